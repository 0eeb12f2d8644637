"""Many changed rows of one table in one statement, under the same guard as one: over what was read alone."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.db import connection, models

from factory.kernel.errors import Busy
from factory.kernel.models.base import Journaled

MOST_AT_ONCE = 1000
"""Rows of one statement: no role's time-out ends one, however many rows a command moves."""
GUARDS = ("state", "version")
"""What must still stand in the row as it was read: whoever was overtaken undoes nothing."""


T = TypeVar("T")


def portions(rows: Sequence[T], most: int) -> list[Sequence[T]]:
    """Return the rows in their order, in parts of at most so many."""
    return [rows[start : start + most] for start in range(0, len(rows), most)]


def update_rows(rows: Sequence[Journaled]) -> None:
    """Write the changed columns of each locked row; one statement for all rows that changed the same ones.

    How many statements that are depends on the transitions that were made; a thousand rows take one more.
    Raises `Busy` when a row is not as it was read any more; the command then leaves nothing behind.
    """
    alike: dict[tuple[str, ...], list[Journaled]] = {}
    for row in rows:
        alike.setdefault(tuple(row.changed_fields()), []).append(row)
    for names, group in alike.items():
        for part in portions(group, MOST_AT_ONCE) if names else ():
            _update(part, names)
        for row in group:
            row.remember()


def _update(rows: Sequence[Journaled], names: Sequence[str]) -> None:
    meta = type(rows[0])._meta
    fields = {field.attname: field for field in meta.concrete_fields}
    guards = [name for name in GUARDS if name in rows[0]._held]
    statement = _statement(meta, [fields[name] for name in names], [fields[name] for name in guards])
    told = [
        {"pk": row.pk}
        | {f"new_{fields[name].column}": getattr(row, name) for name in names}
        | {f"was_{fields[name].column}": row._held[name] for name in guards}
        for row in rows
    ]
    with connection.cursor() as cursor:
        cursor.execute(statement, [json.dumps(told, default=_text)])
        if cursor.rowcount != len(rows):
            raise Busy(f"Some {meta.verbose_name_plural} changed while they were looked at; try again.")


def _statement(meta: Any, written: Iterable[Any], guards: Iterable[Any]) -> str:
    quote, key = connection.ops.quote_name, meta.pk
    written, guards = list(written), list(guards)
    typed = [f"pk {_type(key)}"]
    typed += [f"{quote('new_' + field.column)} {_type(field)}" for field in written]
    typed += [f"{quote('was_' + field.column)} {_type(field)}" for field in guards]
    values = [f"{quote(field.column)} = r.{quote('new_' + field.column)}" for field in written]
    same = [f"t.{quote(field.column)} = r.{quote('was_' + field.column)}" for field in guards]
    return (
        f"UPDATE {quote(meta.db_table)} AS t SET {', '.join(values)} "
        f"FROM jsonb_to_recordset(%s::jsonb) AS r({', '.join(typed)}) "
        f"WHERE {' AND '.join([f't.{quote(key.column)} = r.pk', *same])}"
    )


def _type(field: "models.Field[Any, Any]") -> str:
    return str(field.db_type(connection))


def _text(value: Any) -> str:
    """Return as PostgreSQL reads it what JSON has no word for: ids, amounts and times."""
    return value.isoformat() if isinstance(value, datetime) else str(value)
