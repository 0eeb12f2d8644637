"""Variables that a platform makes for whatever else it runs: service links of Kubernetes, links of Docker.

A service named `factory-web` sets FACTORY_WEB_SERVICE_HOST, FACTORY_WEB_PORT_8000_TCP_ADDR and more in every
process beside it. Nobody wrote them, so they are neither settings nor misspelt ones.
"""

import re
from collections.abc import Mapping

_HOST = r"[0-9A-Za-z.:-]+"
_URL = rf"(?:tcp|udp|sctp)://(?:{_HOST}|\[{_HOST}\]):\d+"
_NUMBER = r"\d+"
_EXPOSED = r"_PORT_\d+_(?:TCP|UDP|SCTP)"

KUBERNETES = (
    (r"_SERVICE_HOST", _HOST),
    (r"_SERVICE_PORT(?:_[A-Z0-9_]+)?", _NUMBER),
    (r"_PORT", _URL),
    (_EXPOSED, _URL),
    (rf"{_EXPOSED}_PROTO", "tcp|udp|sctp"),
    (rf"{_EXPOSED}_PORT", _NUMBER),
    (rf"{_EXPOSED}_ADDR", _HOST),
)
DOCKER = (
    *KUBERNETES[2:],
    (rf"{_EXPOSED}_(?:START|END)", _URL),
    (rf"{_EXPOSED}_PORT_(?:START|END)", _NUMBER),
    (r"_NAME", r"/\S+/\S+"),
    (r"_ENV_\w+", r"(?s:.*)"),
)


def platform_made(environment: Mapping[str, str]) -> frozenset[str]:
    """Return the names that a platform made: those of a service whose telling variables are all there,
    with the kind of value that a platform gives them."""
    made = set[str]()
    for name in environment:
        service = name.removesuffix("_SERVICE_HOST")
        if service != name and f"{service}_SERVICE_PORT" in environment:
            made |= _made_for(service, KUBERNETES, environment)
        link = re.fullmatch(rf"(.+?){_EXPOSED}_ADDR", name)
        if link and f"{link[1]}_NAME" in environment:
            made |= _made_for(link[1], DOCKER, environment)
    return frozenset(made)


def _made_for(service: str, forms: tuple[tuple[str, str], ...], environment: Mapping[str, str]) -> set[str]:
    return {
        name
        for name, value in environment.items()
        if name.startswith(service)
        and any(re.fullmatch(end, name[len(service) :]) and re.fullmatch(kind, value) for end, kind in forms)
    }
