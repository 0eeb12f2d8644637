"""The database that tests get is the one that production has."""

from django.db import connections


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
