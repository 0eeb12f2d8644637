from collections.abc import Iterator

import pytest

from factory.auditing import audit_all
from tests.usage.money_world import Money, money

MONEY_CODES = [
    "A1",
    "A2",
    "A3",
    "C1",
    "E1a",
    "E1b",
    "E1c",
    "E2a",
    "E2b",
    "E3a",
    "E3b",
    "E3c",
    "E4a",
    "E4b",
    "E4c",
    "E4d",
]


@pytest.fixture
def m(tenant_id: str) -> Iterator[Money]:
    """A tenant with money; after the test its books must be in order."""
    made = money(tenant_id)
    yield made
    found = [v for v in audit_all(MONEY_CODES) if v.tenant_id == tenant_id]
    assert found == []
