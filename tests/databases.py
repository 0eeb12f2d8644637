"""Databases for tests: one template for each state of the migrations, and a fresh clone for each process.

Nothing is ever flushed: evidence tables refuse it, and every test works in a tenant of its own.
"""

import fcntl
import os
import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from factory.embedded import postgres, valkey
from factory.embedded.keeper import Keeper
from factory.embedded.provision import connect, make_database, provision, urls_of
from factory.embedded.system import EmbeddedError, locked, make_folder

ROOT = Path(__file__).resolve().parent.parent
PREFIX = "factory_test"
SCHEMA_SOURCES = (
    "requirements.txt",
    "*/migrations/*.py",
    "tests/*/*/migrations/*.py",
    "factory/kernel/migration_operations.py",
    "factory/database/*.py",
    "factory/embedded/provision.py",
)
FAST = {"fsync": "off", "full_page_writes": "off", "max_connections": "200", "jit": "off"}
"""A machine that fails takes the test database with it; a killed server does not."""
PER_SESSION = 8
"""Redis databases that one session may use: its own, and one for each parallel worker."""


def home() -> Path:
    """Where test servers live: apart from those of `make up`."""
    return Path(os.environ.get("FACTORY_TEST_HOME") or ROOT / "var" / "test")


class Session:
    """What one test run holds: the servers while it lasts, and a slot so that two runs do not meet."""

    def __init__(self, options: Mapping[str, str] = FAST) -> None:
        self.home = home()
        make_folder(self.home)
        admin, redis = os.environ.get("DATABASE_URL"), os.environ.get("REDIS_URL")
        self.keeper = None if admin and redis else Keeper(self.home)
        self.admin_url = admin or postgres.start(self.home, options)
        self.redis_url = redis or valkey.start(self.home)
        self.redis_databases = 16 if redis else valkey.DATABASES
        self.slot, self._slot_file = _take_slot(self.home)

    def environment(self, worker: str | None = None) -> dict[str, str]:
        """Variables for one process of this run, with a database of its own."""
        dbname = f"{PREFIX}_{self.slot}" + (f"_{worker}" if worker else "")
        clone(self.admin_url, template(self.admin_url, self.home), dbname, self.home)
        return base_environment(self.home) | {
            **urls_of(self.admin_url, dbname, secrets=self.home / "secrets", prefix=PREFIX).environment(),
            "REDIS_URL": self.redis_of(worker),
        }

    def redis_of(self, worker: str | None) -> str:
        index = self.slot * PER_SESSION + (int(worker.removeprefix("gw")) + 1 if worker else 0)
        return urlsplit(self.redis_url)._replace(path=f"/{index % self.redis_databases}").geturl()

    def for_workers(self) -> dict[str, str]:
        """What a parallel worker of this run needs to make its own environment."""
        return {
            "FACTORY_TEST_SESSION": f"{self.slot} {self.redis_databases}",
            "FACTORY_TEST_ADMIN_URL": self.admin_url,
            "FACTORY_TEST_REDIS_URL": self.redis_url,
        }

    def close(self) -> None:
        self._slot_file.close()
        if self.keeper:
            self.keeper.release()


class JoinedSession(Session):
    """The same run, as one of its parallel workers sees it."""

    def __init__(self) -> None:
        slot, databases = os.environ["FACTORY_TEST_SESSION"].split()
        self.home, self.slot, self.redis_databases = home(), int(slot), int(databases)
        self.admin_url = os.environ["FACTORY_TEST_ADMIN_URL"]
        self.redis_url = os.environ["FACTORY_TEST_REDIS_URL"]


def base_environment(folder: Path) -> dict[str, str]:
    return {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "FACTORY_ROLE_PREFIX": PREFIX,
        "FACTORY_HOME": str(folder),
        "FACTORY_PROCESS": "command",  # else whoever imports the Celery app makes its children jobs
        "FACTORY_EMBEDDED_ISSUER": "true",
        "SECRET_KEY": "only-for-tests-" + "x" * 40,
        "FACTORY_REFUSED_TOKENS_PER_MINUTE": "1000000",
    }


def fingerprint() -> str:
    """Changes whenever a freshly migrated database would look different."""
    state = sha256()
    for pattern in SCHEMA_SOURCES:
        for file in sorted(ROOT.glob(pattern)):
            state.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    return state.hexdigest()[:12]


def template(admin_url: str, folder: Path) -> str:
    """The migrated database that all clones are made of; built once for each state of the migrations."""
    name = f"{PREFIX}_template_{fingerprint()}"
    with locked(folder / ".template"), connect(admin_url) as connection:
        if not _exists(connection, name):
            _build(admin_url, connection, name, folder)
    return name


def clone(admin_url: str, source: str, dbname: str, folder: Path) -> None:
    with connect(admin_url) as connection:
        _drop(connection, dbname)
        make_database(connection, dbname, PREFIX, template=source)


def _build(admin_url: str, connection: psycopg.Connection, name: str, folder: Path) -> None:
    for (old,) in connection.execute(
        "SELECT datname FROM pg_database WHERE starts_with(datname, %s)", (f"{PREFIX}_template_",)
    ).fetchall():
        _drop(connection, old)
    draft = f"{PREFIX}_template_draft"
    urls = provision(admin_url, draft, secrets=folder / "secrets", prefix=PREFIX)
    _migrate(base_environment(folder) | urls.environment() | {"REDIS_URL": "redis://127.0.0.1:1/0"})
    connection.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(*map(sql.Identifier, (draft, name))))


def _migrate(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "migrate", "--no-input", "-v", "0", "--skip-schema"],
        cwd=ROOT,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise EmbeddedError("The test database cannot be migrated:\n" + (done.stderr or done.stdout)[-1500:])


def _exists(connection: psycopg.Connection, dbname: str) -> bool:
    return bool(connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (dbname,)).fetchone())


def _drop(connection: psycopg.Connection, dbname: str) -> None:
    connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(dbname)))


def _take_slot(folder: Path) -> tuple[int, IO[str]]:
    """The first number that no other test run of this folder holds."""
    for number in range(64):
        file = (folder / f".slot-{number}").open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            continue
        return number, file
    raise EmbeddedError("64 test runs are going on in this folder already.")
