"""The tenant wall: which tenant the running transaction may see.

Two walls stand. This one fails closed with a clear error; PostgreSQL's forced row-level security
is the truth. The tenant is a transaction-local setting, so that a pooled connection carries
nothing over to the next caller.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.conf import settings
from django.db import connection, connections, transaction
from django.db.backends.utils import CursorWrapper
from psycopg.pq import TransactionStatus

from factory.kernel.context import Context

TENANT_SETTING = "factory.tenant"

_active: ContextVar[tuple[Context, Any] | None] = ContextVar("factory_active_context", default=None)
"""The scope and the connection whose transaction it is: a context variable may be copied into another
thread (asyncio's helpers do it), where the connection is another one and bound to no tenant."""


class TenantNotSet(RuntimeError):
    """Tenant data was asked for outside any tenant's scope: a defect of the caller."""


def active() -> Context:
    """The context whose tenant the running transaction is bound to."""
    ctx = active_or_none()
    if ctx is None:
        raise TenantNotSet("No tenant is in scope: read inside reading(ctx), write inside a command.")
    return ctx


def active_or_none() -> Context | None:
    """The context in scope, if there is one, of this thread's own transaction."""
    scope = _active.get()
    return scope[0] if scope and scope[1] is connections["default"] else None


def _set(**values: str) -> None:
    calls = ", ".join("set_config(%s, %s, true)" for _ in values)
    flat: list[Any] = [part for name, value in values.items() for part in (name, value)]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {calls}", flat)


@contextmanager
def bound(ctx: Context, *, read_only: bool = False, one_moment: bool = False) -> Iterator[None]:
    """One top-level transaction bound to the tenant of `ctx`; of `one_moment`, if all of its statements see
    what the first one saw.

    Durable: it refuses to be nested, because an outer transaction would decide over its commit.
    """
    with transaction.atomic(durable=True):
        if one_moment:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        values = {TENANT_SETTING: ctx.tenant_id}
        if read_only:
            values["transaction_read_only"] = "on"
        _set(**values)
        token = _active.set((ctx, connections["default"]))
        try:
            yield
        finally:
            _active.reset(token)


@contextmanager
def reading(ctx: Context) -> Iterator[None]:
    """A read-only transaction in the tenant of `ctx`; inside one of the same tenant it joins."""
    outer = active_or_none()
    if outer is not None:
        if outer.tenant_id != ctx.tenant_id:
            raise TenantNotSet(f"Already reading as {outer.tenant_id}; {ctx.tenant_id} needs its own scope.")
        yield
        return
    with bound(ctx, read_only=True):
        yield


@contextmanager
def reading_one_moment(ctx: Context) -> Iterator[None]:
    """A read-only transaction of its own, in which nothing moves from one statement to the next."""
    with bound(ctx, read_only=True, one_moment=True):
        yield


@contextmanager
def scanning() -> Iterator[CursorWrapper]:
    """A read-only cursor that sees every tenant, but only ids, tenants and due times.

    It runs as the role `factory_scan`, whose grants name the columns; each item that it finds is
    then worked in its own tenant. Inside an open command it lends the role for the block.
    """
    role = connection.ops.quote_name(f"{settings.FACTORY_ROLE_PREFIX}_scan")
    if connection.in_atomic_block:
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL ROLE {role}")
            try:
                yield cursor
            finally:
                if connection.connection.info.transaction_status != TransactionStatus.INERROR:
                    cursor.execute("RESET ROLE")  # a broken transaction gives it back by rolling back
        return
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL ROLE {role}; SET TRANSACTION READ ONLY")
        yield cursor


@contextmanager
def retaining() -> Iterator[CursorWrapper]:
    """A cursor of the retention role, in a transaction of its own: it removes evidence past its time."""
    with transaction.atomic(using="retention", durable=True), connections["retention"].cursor() as cursor:
        yield cursor
