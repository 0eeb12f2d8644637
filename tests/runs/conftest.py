from collections.abc import Iterator

import pytest

from factory.evidence.auditor import audit_all
from tests.support.running import House


@pytest.fixture(scope="module")
def lived_in() -> Iterator[dict[str, str]]:
    """The tenants of a module's tests, by name; after the last one the auditor has nothing against any."""
    tenants: dict[str, str] = {}
    yield tenants
    found = [(tenants[v.tenant_id], v) for v in audit_all() if v.tenant_id in tenants]
    assert found == []


@pytest.fixture
def house(tenant_id: str, lived_in: dict[str, str], request: pytest.FixtureRequest) -> House:
    """A house in which runs go."""
    lived_in[tenant_id] = request.node.name
    return House(tenant_id)
