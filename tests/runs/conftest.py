from collections.abc import Iterator

import pytest

from tests.support.evidence import violations
from tests.support.running import House


@pytest.fixture
def house(tenant_id: str) -> Iterator[House]:
    """A house in which runs go; when the test ends, the auditor has nothing against it."""
    made = House(tenant_id)
    yield made
    assert violations(tenant_id) == []
