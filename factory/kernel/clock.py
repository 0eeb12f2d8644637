"""The one clock: the database's.

`clock_timestamp()` and not `now()`: the latter stands still while a transaction waits for a lock,
and would call a lapsed lease live.
"""

from datetime import datetime
from typing import cast

from django.db import connection


def now() -> datetime:
    """The database's time, read now. Call it after the locks are held that the verdict needs."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cast(datetime, cursor.fetchone()[0])
