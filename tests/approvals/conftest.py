from collections.abc import Iterator

import pytest

from tests.support.approvals import Asking, Stage, asking, staged


@pytest.fixture(autouse=True)
def stage() -> Iterator[Stage]:
    """The subjects of the requests of the test."""
    with staged() as it:
        yield it


@pytest.fixture
def asker(tenant_id: str) -> Asking:
    """A step that asks, in a world with the platform's policy."""
    return asking(tenant_id)


@pytest.fixture
def soon(settings) -> float:
    """Requests opened in this test expire after so many seconds."""
    settings.FACTORY_APPROVALS_DEFAULT_EXPIRY_HOURS = 0.4 / 3600
    return 0.4
