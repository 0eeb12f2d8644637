"""Tokens that are refused are counted by the address that they come from: too many of them get 429.

They are counted at the broker, over all processes. A token that is good is never counted and always passes,
whoever else is behind its address; while the broker is away nothing is counted.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from redis import Redis
from rest_framework.exceptions import Throttled

from factory.identity.tokens import TokenRefused
from factory.kernel.hints import asked

SECONDS = 60


@contextmanager
def counting_refusals(address: str) -> Iterator[None]:
    """Count a token that the block refuses; raise `Throttled` once there were too many within a minute."""
    try:
        yield
    except TokenRefused as refusal:
        wait = _counted(address)
        if wait:
            raise Throttled(wait) from refusal
        raise


def _counted(address: str) -> int:
    """Count one more; return for how many seconds the address has had too many, which may be none."""
    key = f"factory:refused:{address}"

    def count(broker: "Redis") -> list[int]:
        together = broker.pipeline()
        together.incr(key)
        together.expire(key, SECONDS, nx=True)
        together.ttl(key)
        answers: list[int] = together.execute()
        return answers

    told = asked(count)
    if told is None or told[0] <= settings.FACTORY_REFUSED_TOKENS_PER_MINUTE:
        return 0
    return max(1, told[2])
