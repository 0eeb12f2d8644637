"""The database that tests get is the one that production has."""

import pytest
from django.db import connections

from tests.databases import PER_SESSION, Session


def user_of(alias: str) -> str:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT session_user")
        return str(cursor.fetchone()[0])


def test_each_alias_logs_in_as_its_own_role() -> None:
    assert [user_of(alias) for alias in ("default", "owner", "auditor", "retention")] == [
        "factory_test_app",
        "factory_test_owner",
        "factory_test_auditor",
        "factory_test_retention",
    ]


def test_the_application_may_put_on_the_scan_role_for_a_transaction() -> None:
    with connections["default"].cursor() as cursor:
        cursor.execute("BEGIN; SET LOCAL ROLE factory_test_scan")
        cursor.execute("SELECT current_user")
        assert cursor.fetchone() == ("factory_test_scan",)
        cursor.execute("COMMIT; SELECT current_user")
        cursor.execute("SELECT current_user")
        assert cursor.fetchone() == ("factory_test_app",)


def test_time_outs_keep_one_stuck_client_from_stopping_all() -> None:
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout'), current_setting('statement_timeout')")
        assert cursor.fetchone() == ("2s", "30s")


@pytest.mark.parametrize("path", ["", "/", "/0", "/3?protocol=3"])
def test_each_process_has_a_broker_database_of_its_own_however_the_server_is_named(path: str) -> None:
    session = Session.__new__(Session)
    session.redis_url, session.redis_databases, session.slot = f"redis://:word@broker.test:6390{path}", 16, 1
    query = path.partition("?")[2] and "?protocol=3"
    assert session.redis_of("gw1") == f"redis://:word@broker.test:6390/{PER_SESSION + 2}{query}"
