from collections.abc import Iterator
from uuid import uuid4

import pytest

from factory.evidence.auditor import audit_all
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
    "E3d",
    "E4a",
    "E4b",
    "E4c",
    "E4d",
]


@pytest.fixture
def m(tenant_id: str) -> Iterator[Money]:
    """A tenant with money; after the test its books must be in order."""
    yield from in_order(tenant_id)


@pytest.fixture(scope="module")
def ours() -> Iterator[Money]:
    """One tenant for all tests of a module that change nothing which another of them sees."""
    yield from in_order(f"t-{uuid4().hex[:16]}")


def in_order(tenant_id: str) -> Iterator[Money]:
    yield money(tenant_id)
    assert [found for found in audit_all(MONEY_CODES) if found.tenant_id == tenant_id] == []
