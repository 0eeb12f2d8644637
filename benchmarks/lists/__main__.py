"""`python -m benchmarks.lists [--rows N] [--only WORD] [--most MS] [--keep] [--through]`: a million rows.

A house of its own is filled in a few minutes: a million rows of what runs write, and a fifth as many of a
neighbour. Then everybody opens every list with every filter and every search, and the pages that read the
same tables. Told are, for each, the slowest question's p95 in milliseconds, what of it the database took,
the blocks that it touched, and what in its plans grows with the tables. It ends with 1 past the limit.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import psycopg

from tests import databases

ROWS = 1_000_000
MOST_MS = 300
NAME = f"{databases.PREFIX}_lists"
SERVER = {
    "fsync": "off", "full_page_writes": "off", "wal_level": "minimal", "max_wal_senders": "0",
    "max_wal_size": "8GB", "checkpoint_timeout": "30min", "autovacuum": "off", "max_connections": "60",
    "shared_buffers": "1GB",
}  # fmt: skip
"""Nothing here has to outlive a fall of the machine. What plans depend on is as PostgreSQL comes."""


def main() -> int:
    given = _arguments()
    os.environ.setdefault("FACTORY_TEST_HOME", str(databases.ROOT / "var" / "bench-lists"))
    session = databases.Session(SERVER)
    try:
        return _measured(session, given)
    finally:
        session.close()
        if not given.keep:
            shutil.rmtree(session.home, ignore_errors=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.lists", description="The console's lists, large."
    )
    parser.add_argument("--rows", type=int, default=ROWS, help="of each table that runs write (%(default)s)")
    parser.add_argument("--only", default="", help="pages whose path holds the word")
    parser.add_argument("--most", type=float, default=MOST_MS, help="milliseconds of p95 (%(default)s)")
    parser.add_argument(
        "--keep", action="store_true", help="keep the grown house for the next time, and use it"
    )
    parser.add_argument("--through", action="store_true", help="as if no list were answered at first")
    parser.add_argument("--all", action="store_true", help="tell of every question, not of the slowest alone")
    return parser.parse_args()


def _measured(session: databases.Session, given: argparse.Namespace) -> int:
    known = session.home / "large.json"
    if not known.exists():
        databases.clone(
            session.admin_url, databases.template(session.admin_url, session.home), NAME, session.home
        )
    os.environ.update(_environment(session))
    import django

    django.setup()
    from benchmarks.lists import asking, growing, house, pages, telling

    if given.through:
        asking.never_at_first()
    with _superuser(session) as db:
        large = growing.read(known) or house.built(given.rows)
        if given.keep:
            growing.write(known, large)
        growing.grow_all(db, large)
        everybody = house.people(large.tenant, large.small, large.second, large.main)
        questions = chain(asking.lists(everybody, given.only), pages.others(db, everybody, large, given.only))
        found: dict[str, list[asking.Measurement]] = {}
        for name, person, asked in questions:
            one = asking.ask(person, asked, given.most)
            found.setdefault(name, []).append(one)
            if given.all or one.fault or one.seen.signs or one.p95 > given.most / 2:
                print(telling.line(one), flush=True)  # noqa: T201  a program's output
        unused = telling.unused_indexes(db)
    return telling.tell(found, unused, given.most)


def _environment(session: databases.Session) -> dict[str, str]:
    urls = databases.urls_of(
        session.admin_url, NAME, secrets=session.home / "secrets", prefix=databases.PREFIX
    )
    redis = {"REDIS_URL": session.redis_of(None)}
    return databases.base_environment(session.home) | urls.environment() | redis


@contextmanager
def _superuser(session: databases.Session) -> Iterator["psycopg.Connection[Any]"]:
    from factory.embedded.provision import with_database

    with psycopg.connect(with_database(session.admin_url, NAME), autocommit=True) as db:
        yield db


if __name__ == "__main__":
    sys.exit(main())
