"""Brings servers and databases to the tests, before Django reads its settings.

Unset, DATABASE_URL and REDIS_URL mean private servers below var/test, which stop with the last test run.
Set, they name real servers; DATABASE_URL is then an administrator's.

    python -m pytest tests/runs            tests, with a fresh database
    python -m tests.plugin [command …]     a command (or a shell) with such a database
"""

import os
import subprocess
import sys
from collections.abc import Generator
from typing import Any

import pytest

from factory.embedded.system import EmbeddedError
from tests.databases import JoinedSession, Session

session: Session | None = None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests() -> Generator[None, Any, Any]:
    try:
        prepare()
    except EmbeddedError as error:
        raise pytest.UsageError(str(error)) from error
    return (yield)


def prepare() -> Session:
    """Set the environment of this process; a parallel worker joins the servers of its parent."""
    global session
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker and "FACTORY_TEST_SESSION" in os.environ:
        session = JoinedSession()
        os.environ.update(session.environment(worker))
    else:
        session = Session()
        os.environ.update(session.environment() | session.for_workers())
    return session


def main() -> int:
    try:
        held = prepare()
    except EmbeddedError as error:
        sys.exit(str(error))
    try:
        return subprocess.run(sys.argv[1:] or [os.environ.get("SHELL", "/bin/sh")], check=False).returncode
    finally:
        held.close()


if __name__ == "__main__":
    sys.exit(main())
