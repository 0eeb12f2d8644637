"""What every test has: a migrated database on a real server, and a tenant of its own."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from pytest_django.plugin import DjangoDbBlocker


@pytest.fixture(scope="session")
def django_db_setup() -> None:
    """Nothing: tests/plugin.py has made the database, through the real migrations."""


@pytest.fixture(scope="session", autouse=True)
def _database_for_everybody(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    # Commits are real, in any test: locks, triggers and clocks behave only then as in production.
    with django_db_blocker.unblock():
        yield


@pytest.fixture
def tenant_id() -> str:
    """A tenant that no other test knows. Nothing is made for it."""
    return f"t-{uuid4().hex[:16]}"
