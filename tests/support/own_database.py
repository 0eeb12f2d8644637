"""A database for one test alone: for acts that reach over all tenants, such as a recovery or a purge.

Most tests share one, each in a tenant of its own, and damage done by one is none of another's. What looks at,
or changes, everything that there is needs a place where nothing is but its own.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from django.db import connections

from factory.embedded.provision import connect, make_database, with_database
from tests.databases import PREFIX, home, template


@contextmanager
def leading_to(name: str) -> Iterator[None]:
    """The product's connections lead to another database for the while; so does DATABASE_URL."""
    before = {alias: connections[alias].settings_dict["NAME"] for alias in connections}
    url = os.environ["DATABASE_URL"]
    try:
        _lead(dict.fromkeys(before, name))
        os.environ["DATABASE_URL"] = with_database(url, name)
        yield
    finally:
        os.environ["DATABASE_URL"] = url
        _lead(before)


def _lead(names: dict[str, str]) -> None:
    for alias, name in names.items():
        connections[alias].close()
        connections[alias].settings_dict["NAME"] = name


@contextmanager
def fresh(source: str = "template0") -> Iterator[str]:
    """A database that is dropped afterwards, a copy of `source`: empty by default."""
    name = f"{PREFIX}_own_{uuid4().hex[:10]}"
    with connect(os.environ["FACTORY_TEST_ADMIN_URL"]) as server:
        make_database(server, name, PREFIX, template=source)
        try:
            yield name
        finally:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


@contextmanager
def own_database() -> Iterator[str]:
    """A migrated database with nothing in it, to which all connections of the product lead."""
    with fresh(template(os.environ["FACTORY_TEST_ADMIN_URL"], home())) as name, leading_to(name):
        yield name
