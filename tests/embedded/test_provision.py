"""Roles and database: made once, found again, and no more rights than each needs."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from factory.embedded import postgres
from factory.embedded.provision import Urls, provision
from factory.embedded.system import EmbeddedError
from tests.embedded.conftest import FAST, folder_for_servers


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """One server for this module: nothing here stops it."""
    yield from folder_for_servers()


@pytest.fixture(scope="module")
def urls(home: Path) -> Urls:
    return provision(postgres.start(home, FAST), "product", secrets=home / "secrets")


def ask(url: str, query: str) -> tuple[object, ...]:
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()  # type: ignore[arg-type]
    return row or ()


def test_twice_is_the_same_as_once(home: Path, urls: Urls) -> None:
    assert provision(postgres.start(home, FAST), "product", secrets=home / "secrets") == urls


@pytest.mark.requirement("SEC-09")
def test_the_application_is_neither_owner_nor_above_the_walls(urls: Urls) -> None:
    rights = "rolsuper, rolbypassrls, rolcreatedb, rolcreaterole, rolinherit"
    query = f"SELECT {rights} FROM pg_roles WHERE rolname = current_user"
    assert ask(urls.app, query) == (False,) * 5
    owned = "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = current_database()"
    assert ask(urls.app, owned) == ("factory_owner",)


def test_the_application_may_make_no_tables(urls: Urls) -> None:
    with psycopg.connect(urls.app) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("CREATE TABLE mine (n int)")


def test_the_auditor_cannot_write(urls: Urls) -> None:
    with psycopg.connect(urls.owner, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (n int); GRANT ALL ON t TO factory_auditor")
    with psycopg.connect(urls.auditor) as connection, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        connection.execute("INSERT INTO t VALUES (1)")


def test_strangers_cannot_connect(home: Path, urls: Urls) -> None:
    admin = postgres.start(home, FAST)
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("CREATE ROLE stranger LOGIN PASSWORD 'stranger'")
    stranger = urls.app.replace(urls.app.partition("//")[2].rpartition("@")[0], "stranger:stranger")
    with pytest.raises(psycopg.OperationalError, match="permission denied"):
        psycopg.connect(stranger)


def test_an_administrator_without_superuser_rights_is_enough(home: Path) -> None:
    admin = postgres.start(home, FAST)
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("CREATE ROLE boss LOGIN CREATEDB CREATEROLE PASSWORD 'boss'")
    boss = admin.replace(admin.partition("//")[2].rpartition("@")[0], "boss:boss")
    made = provision(boss, "theirs", secrets=home / "secrets", prefix="theirs")
    assert provision(boss, "theirs", secrets=home / "secrets", prefix="theirs") == made
    with psycopg.connect(made.app) as connection:
        connection.execute("SET LOCAL ROLE theirs_scan")


def test_somebody_without_the_right_is_told_which_is_missing(home: Path, urls: Urls) -> None:
    with pytest.raises(EmbeddedError, match="may not make roles or databases"):
        provision(urls.app, "other", secrets=home / "secrets", prefix="other")


def test_a_server_that_does_not_answer_is_named_without_its_password(home: Path) -> None:
    with pytest.raises(EmbeddedError, match=r"does not answer at me@127\.0\.0\.1:1/x") as raised:
        provision("postgresql://me:hunter2@127.0.0.1:1/x", "x", secrets=home / "secrets")
    assert "hunter2" not in str(raised.value)
