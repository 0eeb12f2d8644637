"""One at a time, where there is no row to lock yet."""

from collections.abc import Iterable

from django.db import connection

from factory.kernel.recording import open_work


def one_at_a_time(kind: str, keys: Iterable[object], *, shared: bool = False) -> None:
    """Until the end of the command, keep out everybody else who names one of these keys.

    `shared` keeps out only those who do not share. The locks are taken in one order for all callers, so
    that two that overlap wait and never deadlock.
    """
    tenant = open_work().ctx.tenant_id
    names = [f"usage:{tenant}:{kind}:{key}" for key in keys]
    lock = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {lock}(lane) FROM (SELECT DISTINCT hashtextextended(name, 0) AS lane "
            "FROM unnest(%s::text[]) AS name ORDER BY lane) AS lanes",
            [names],
        )
