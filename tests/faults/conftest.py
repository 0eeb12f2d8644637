"""A house for each fault. Whatever happened in it, the auditor finds nothing in the end."""

import random
from collections.abc import Iterator

import pytest

from tests.faults.rounds import seeded
from tests.support.evidence import violations
from tests.support.running import House
from tests.watch.server import serving


@pytest.fixture
def house(tenant_id: str) -> Iterator[House]:
    made = House(tenant_id, budget="100000")
    yield made
    assert violations(tenant_id) == []


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """The test's own source of chance, whose seed is printed."""
    return seeded(request.node.name)


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    """The address of the surface, served on a real port."""
    with serving() as url:
        yield f"{url}/factory"
