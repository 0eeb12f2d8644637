"""Roles and database of one installation, on the embedded server or on any other (PostgreSQL 15 or newer).

owner    owns the database and its tables: migrations only
app      what the product runs as: no owner, bound by row-level security
scan     which due work there is, over all tenants: no login, `app` may put it on for one transaction
auditor  reads everything, writes nothing
retention  removes evidence whose time is over, and nothing else
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from psycopg import sql

from factory.embedded.system import EmbeddedError, secret

OLDEST_SERVER = 150000
ROLE_OPTIONS = {
    "owner": "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS",
    "app": "LOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS",
    "scan": "NOLOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS",
    "auditor": "LOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS",
    "retention": "LOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS",
}
ROLE_SETTINGS = {
    "owner": {"lock_timeout": "2s"},
    "app": {"lock_timeout": "2s", "statement_timeout": "5s", "idle_in_transaction_session_timeout": "10s"},
    "auditor": {"lock_timeout": "2s", "statement_timeout": "10min", "default_transaction_read_only": "on"},
    "retention": {"lock_timeout": "2s", "statement_timeout": "5min"},
}
"""One stuck client must not stop all. Jobs ask for a longer statement time-out when they connect."""


LOGINS = ("app", "owner", "auditor", "retention")


@dataclass(frozen=True)
class Urls:
    """Say how the four roles that log in reach the database."""

    app: str
    owner: str
    auditor: str
    retention: str

    def environment(self) -> dict[str, str]:
        return {
            "DATABASE_URL": self.app,
            "DATABASE_OWNER_URL": self.owner,
            "DATABASE_AUDITOR_URL": self.auditor,
            "DATABASE_RETENTION_URL": self.retention,
        }


def provision(admin_url: str, dbname: str, *, secrets: Path, prefix: str = "factory") -> Urls:
    """Make roles and database as they should be; what is there already stays. Returns the URLs."""
    with connect(admin_url) as connection:
        passwords = passwords_of(secrets, prefix)
        try:
            _make_roles(connection, prefix, passwords)
            make_database(connection, dbname, prefix)
        except psycopg.errors.InsufficientPrivilege as error:
            raise EmbeddedError(
                f"{_shown(admin_url)} may not make roles or databases ({error.diag.message_primary}). "
                "Set DATABASE_URL to an administrator's URL, or set DATABASE_URL, DATABASE_OWNER_URL, "
                "DATABASE_AUDITOR_URL and DATABASE_RETENTION_URL to roles that have been made already."
            ) from error
    with connect(with_database(admin_url, dbname)) as connection:
        _open_schema(connection, prefix)
    return urls_of(admin_url, dbname, secrets=secrets, prefix=prefix)


def passwords_of(secrets: Path, prefix: str) -> dict[str, str]:
    return {part: secret(secrets, f"{prefix}_{part}") for part in LOGINS}


def urls_of(admin_url: str, dbname: str, *, secrets: Path, prefix: str = "factory") -> Urls:
    """The URLs of a database on a server whose roles have been made."""
    passwords = passwords_of(secrets, prefix)

    def as_role(part: str) -> str:
        return with_database(admin_url, dbname, user=f"{prefix}_{part}", password=passwords[part])

    return Urls(**{part: as_role(part) for part in LOGINS})


def connect(url: str) -> psycopg.Connection:
    """An autocommit connection, or a sentence that says why there is none."""
    try:
        connection = psycopg.connect(url, autocommit=True, connect_timeout=5)
    except psycopg.OperationalError as error:
        raise EmbeddedError(
            f"PostgreSQL does not answer at {_shown(url)}: {str(error).strip().splitlines()[-1]}\n"
            "Check DATABASE_URL, or unset it to use the embedded server."
        ) from error
    if connection.info.server_version < OLDEST_SERVER:
        raise EmbeddedError(f"{_shown(url)} is older than PostgreSQL 15, which is the oldest that works.")
    return connection


def with_database(url: str, dbname: str, *, user: str | None = None, password: str | None = None) -> str:
    """Return a URL of the same server with another database, and perhaps another user."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    who = parts.netloc.rpartition("@")[0]
    if user is not None:
        who = f"{quote(user, safe='')}:{quote(password or '', safe='')}"
    return urlunsplit((parts.scheme, f"{who}@{place}" if who else place, f"/{dbname}", parts.query, ""))


def _make_roles(connection: psycopg.Connection, prefix: str, passwords: dict[str, str]) -> None:
    # Two launchers may provision one server at once; roles belong to the server, not to a database.
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"provision:{prefix}",))
        for part, options in ROLE_OPTIONS.items():
            _make_role(connection, f"{prefix}_{part}", options, passwords.get(part))
            for key, value in ROLE_SETTINGS.get(part, {}).items():
                _alter(connection, f"{prefix}_{part}", sql.SQL("SET {} = {}"), sql.Identifier(key), value)
        scan, app = sql.Identifier(f"{prefix}_scan"), sql.Identifier(f"{prefix}_app")
        # What the scan may see must be the application's only while it has put the role on: from 16 on the
        # grant itself says so, and remembers how the role was when it was made.
        apart = " WITH INHERIT FALSE, SET TRUE" if connection.info.server_version >= 160000 else ""
        connection.execute(sql.SQL("GRANT {} TO {}" + apart).format(scan, app))


def _make_role(connection: psycopg.Connection, name: str, options: str, password: str | None) -> None:
    exists = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (name,)).fetchone()
    verb = sql.SQL("ALTER ROLE {} {}" if exists else "CREATE ROLE {} {}")
    # Only a superuser may say NOSUPERUSER or NOBYPASSRLS; for everybody else it is the default anyway.
    if not _is_superuser(connection):
        options = options.replace("NOSUPERUSER", "").replace("NOBYPASSRLS", "")
    connection.execute(verb.format(sql.Identifier(name), sql.SQL(options)))
    if password is not None:
        _alter(connection, name, sql.SQL("PASSWORD {}"), password)


def _alter(connection: psycopg.Connection, role: str, change: sql.SQL, *values: sql.Composable | str) -> None:
    parts = [value if isinstance(value, sql.Composable) else sql.Literal(value) for value in values]
    connection.execute(sql.SQL("ALTER ROLE {} ").format(sql.Identifier(role)) + change.format(*parts))


def _is_superuser(connection: psycopg.Connection) -> bool:
    row = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
    return bool(row and row[0])


def make_database(
    connection: psycopg.Connection, dbname: str, prefix: str, *, template: str = "template0"
) -> None:
    """The database `dbname`, owned by the owner role, and open to nobody else but the other three logins."""
    owner = sql.Identifier(f"{prefix}_owner")
    database = sql.Identifier(dbname)
    if not _is_superuser(connection):
        connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(owner))
    if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (dbname,)).fetchone():
        create = sql.SQL("CREATE DATABASE {} OWNER {} ENCODING 'UTF8' TEMPLATE {}")
        with suppress(psycopg.errors.DuplicateDatabase):  # another launcher was faster
            connection.execute(create.format(database, owner, sql.Identifier(template)))
    connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(database))
    for part in ("app", "auditor", "retention"):
        role = sql.Identifier(f"{prefix}_{part}")
        connection.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, role))


def _open_schema(connection: psycopg.Connection, prefix: str) -> None:
    connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    for part in ("app", "scan", "auditor", "retention"):
        connection.execute(
            sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(sql.Identifier(f"{prefix}_{part}"))
        )


def _shown(url: str) -> str:
    parts = urlsplit(url)
    who = f"{parts.username}@" if parts.username else ""
    return f"{who}{parts.hostname}:{parts.port or 5432}{parts.path}"
