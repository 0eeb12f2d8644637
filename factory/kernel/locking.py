"""Row locks, in the one order of the control plane.

release → project (shared) → run → step → attempt → lease → waiver → approval → reservation → budget;
several rows of one table by primary key. `NO KEY` locks, because foreign keys of children lock
their parents too, and the plain kind deadlocks with them.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

from django.db import connection, models

from factory.kernel.errors import DomainError, NotFound
from factory.kernel.models.base import TenantModel

T = TypeVar("T", bound=TenantModel)


def lock(model: type[T], pk: Any, *, missing: DomainError | None = None, shared: bool = False) -> T:
    """The row, locked and read after the lock was granted.

    `shared` lets others share it and keeps writers out. Raises `missing`, or `NotFound`, when
    the tenant in scope has no such row.
    """
    if shared:
        _lock_shared(model, pk)
        row = model.objects.filter(pk=pk).first()
    else:
        row = model.objects.select_for_update(no_key=True).filter(pk=pk).first()
    if row is None:
        raise missing or NotFound(f"There is no {model._meta.verbose_name} {pk} here.")
    locked: T = row
    return locked


def lock_many(source: "type[T] | models.QuerySet[T]", pks: Iterable[Any] | None = None) -> list[T]:
    """Several rows of one table, locked in the order of their keys; missing ones are left out."""
    rows: models.QuerySet[T] = source if isinstance(source, models.QuerySet) else source.objects.all()
    if pks is not None:
        rows = rows.filter(pk__in=list(pks))
    return list(rows.order_by("pk").select_for_update(no_key=True))


def one_at_a_time(*words: object) -> None:
    """Until the end of the command, keep out everybody else who says the same words: where there is no row
    to lock yet, or none that may be changed. The tenant is one of the words."""
    key = ":".join(str(word) for word in words)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [key])


def _lock_shared(model: type[T], pk: Any) -> None:
    quote = connection.ops.quote_name
    table, column = quote(model._meta.db_table), quote(str(model._meta.pk.column))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {table} WHERE {column} = %s FOR SHARE", [pk])
