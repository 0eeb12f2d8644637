"""The two servers of the product as they are started, with few threads and short bounds."""

from collections.abc import Iterator

import pytest

from tests.support.web import serving

THREADS = 4
REQUEST_SECONDS, KEEP_ALIVE_SECONDS = 6, 20
BOUNDS = {
    "FACTORY_WEB_THREADS": str(THREADS),
    "FACTORY_REQUEST_SECONDS": str(REQUEST_SECONDS),
    "FACTORY_KEEP_ALIVE_SECONDS": str(KEEP_ALIVE_SECONDS),
}


@pytest.fixture(scope="session")
def web_base() -> Iterator[str]:
    with serving("web", **BOUNDS) as base:
        yield base


@pytest.fixture(scope="session")
def stream_base() -> Iterator[str]:
    with serving("stream", **BOUNDS) as base:
        yield base


@pytest.fixture(params=["web", "stream"])
def base(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(f"{request.param}_base")
    return found
