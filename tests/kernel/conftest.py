from uuid import uuid4

import pytest

from factory.kernel.context import Actor, Context
from factory.kernel.permissions import SCOPES


@pytest.fixture
def ctx(tenant_id: str) -> Context:
    """An operator of the test's own tenant."""
    return operator(tenant_id)


def operator(tenant_id: str) -> Context:
    actor = Actor(
        subject="ada", kind="person", person="ada", roles=frozenset({"Operator"}), scopes=frozenset(SCOPES)
    )
    return Context(tenant_id=tenant_id, project_id=uuid4(), actor=actor)
