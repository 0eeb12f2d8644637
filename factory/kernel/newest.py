"""Looking through the newest rows where what is sought has no index: a bounded look, never a scan."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet


def ids_among(
    rows: QuerySet[Any], most: int, columns: Sequence[str], where: str, params: Mapping[str, Any], limit: int
) -> list[UUID]:
    """The ids of those among the first `most` of `rows`, in their order, that fit `where`.

    `rows` has an order that an index gives; `where` is SQL over the ids (`pk`) and the named columns, written
    by us, with parameters by name. As a condition of the rows themselves it would not be bounded.
    """
    inner, given = rows.values_list("pk", *columns)[:most].query.sql_with_params()
    names = [f"%(inner{n})s" for n in range(len(given))]
    sql = f"SELECT pk FROM ({inner % tuple(names)}) AS newest WHERE {where} LIMIT {int(limit)}"
    with connection.cursor() as cursor:
        cursor.execute(sql, {f"inner{n}": value for n, value in enumerate(given)} | dict(params))
        return [pk for (pk,) in cursor.fetchall()]


def containing(words: str) -> str:
    """Words as a pattern of LIKE that finds them anywhere."""
    return f"%{beginning(words)}"


def beginning(words: str) -> str:
    """Words as a pattern of LIKE that finds what begins with them."""
    for special in "\\%_":
        words = words.replace(special, f"\\{special}")
    return f"{words}%"
