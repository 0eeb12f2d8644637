from collections.abc import Callable, Iterator
from uuid import UUID, uuid4

import pytest
from django.conf import settings

from factory.kernel.context import Actor, Context
from factory.kernel.permissions import SCOPES
from factory.messaging.webhooks.commands import create_webhook
from factory.messaging.webhooks.signing import new_secret
from tests.webhooks.receiver import Receiver, receiving

Subscribe = Callable[..., tuple[UUID, str]]


@pytest.fixture
def ctx(tenant_id: str) -> Context:
    """Somebody who may do everything about events in one project."""
    actor = Actor(
        subject="ada", kind="person", person="ada", roles=frozenset({"WorkspaceAdmin", "Operator"}),
        scopes=frozenset(SCOPES),
    )  # fmt: skip
    return Context(tenant_id=tenant_id, project_id=uuid4(), actor=actor)


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """An endpoint that the operator trusts, although it is inside and speaks plain http."""
    with receiving() as found:
        monkeypatch.setattr(settings, "FACTORY_WEBHOOKS_TRUSTED_HOSTS", [found.place])
        yield found


@pytest.fixture
def subscribe(ctx: Context, receiver: Receiver) -> Subscribe:
    """A subscription of the receiver, and its secret."""

    def make(*topics: str, by: Context = ctx, url: str = "", consumer: str = "") -> tuple[UUID, str]:
        secret = new_secret()
        made = create_webhook(
            by, url=url or receiver.url, topics=topics, consumer=consumer, description="", secret=secret
        )
        return UUID(made), secret

    return make
