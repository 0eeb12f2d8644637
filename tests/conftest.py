"""What every test has: a migrated database on a real server, and a tenant of its own."""

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pytest_django.plugin import DjangoDbBlocker

from tests.browser.web import find_chromium

MODULES_BEGUN = pytest.StashKey[set[Path]]()
SLOW_ROOMS = {
    "assessment",
    "concurrency",
    "console",
    "embedded",
    "faults",
    "launching",
    "security",
    "watch",
    "webhooks",
}
"""Sweeps and whole surfaces: one question for every route, role, page or pair of callers. `make test` asks
them all; `make check`, run before every commit, keeps the main rules. A file of rarer corners says so itself,
by its `pytestmark`."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks that follow from where a test stands: sweeps are slow, and tests/browser needs a browser."""
    missing = pytest.mark.skip(reason="NO BROWSER: install chromium (as root: apt-get install chromium)")
    for item in items:
        if SLOW_ROOMS & set(item.path.parts):
            item.add_marker(pytest.mark.slow)
        if "browser" in item.path.parts:
            item.add_marker(pytest.mark.browser)
            if not find_chromium() and not os.environ.get("CI"):
                item.add_marker(missing)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    from tests.support.months import wait_past_a_boundary

    begun = item.session.stash.setdefault(MODULES_BEGUN, set())
    first = item.path not in begun and item.get_closest_marker("one_day") is not None
    begun.add(item.path)
    wait_past_a_boundary(module_of_one_day=first)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Half a surrogate pair in captured output, which some tests are about, cannot go between processes."""
    report = yield
    report.sections = [(title, text.encode("utf-8", "replace").decode()) for title, text in report.sections]
    return report


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the browser, for playwright's `executable_path`."""
    found = find_chromium()
    assert found, "These tests need a Chromium: apt-get install chromium"
    return found


@pytest.fixture(scope="session")
def django_db_setup() -> None:
    """Nothing: tests/plugin.py has made the database, through the real migrations."""


@pytest.fixture(scope="session", autouse=True)
def _database_for_everybody(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    # Commits are real, in any test: locks, triggers and clocks behave only then as in production.
    with django_db_blocker.unblock():
        yield


@pytest.fixture(scope="session", autouse=True)
def _every_event_fits_its_schema() -> Iterator[None]:
    """Whatever a test makes the product tell is held against the schema that consumers were given."""
    from jsonschema import Draft202012Validator

    from factory.kernel.events import Event, schema

    plain, validators = Event.payload, dict[type[Event], Draft202012Validator]()

    def checked(event: Event) -> dict[str, Any]:
        told, cls = plain(event), type(event)
        if cls not in validators:
            validators[cls] = Draft202012Validator(
                schema(cls), format_checker=Draft202012Validator.FORMAT_CHECKER
            )
        validators[cls].validate(told)
        return told

    Event.payload = checked  # type: ignore[method-assign]
    yield
    Event.payload = plain  # type: ignore[method-assign]


@pytest.fixture
def tenant_id() -> str:
    """A tenant that no other test knows. Nothing is made for it."""
    return f"t-{uuid4().hex[:16]}"


@pytest.fixture
def own_database() -> Iterator[str]:
    """The name of a database of this test alone; ask for it before anything that writes."""
    from tests.support.own_database import own_database

    with own_database() as name:
        yield name
