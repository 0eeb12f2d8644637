"""Bringing news to people in tests, as relay and jobs do it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import connection, connections, transaction

from factory.kernel.context import Context
from factory.kernel.reconciling import Counts, reconcilers
from factory.kernel.tenancy import bound, reading
from factory.messaging.relay.delivery import drain
from factory.messaging.relay.destinations import Handlers
from notifications.commands import add_channel
from notifications.models import Notice, Notification
from tests.webhooks.receiver import Receiver

EVERY = ("requested", "expiring", "decided", "break-glass", "too-few", "budget-ending")


def handle(tenant_id: str) -> None:
    """What was told reaches the handlers."""
    drain(Handlers(), tenant_id)


def send(tenant_id: str) -> Counts:
    """One round of the sender."""
    return reconcilers()["NotificationSender"].run_once(tenant_id)


def remind(tenant_id: str) -> Counts:
    return reconcilers()["ExpiryReminder"].run_once(tenant_id)


def bring(tenant_id: str) -> None:
    handle(tenant_id)
    send(tenant_id)


def rows(ctx: Context, **where: Any) -> list[Notification]:
    with reading(ctx):
        found = Notification.objects.select_related("notice", "channel").filter(**where)
        return list(found.order_by("created_at", "subject", "id"))


def notices(ctx: Context) -> list[str]:
    with reading(ctx):
        return list(Notice.objects.order_by("made_at").values_list("kind", flat=True))


def told(ctx: Context, kind: str) -> set[str]:
    """Who was told of something of this kind."""
    return {row.subject for row in rows(ctx, notice__kind=kind)}


def make_due(ctx: Context, attempts: int | None = None) -> None:
    """Whatever waits for its next try, or for a claim to lapse, waits no longer; it was tried so often."""
    with bound(ctx), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE notifications_notification SET due_at = NULL, claimed_until = NULL, "
            "attempts = coalesce(%s, attempts)",
            [attempts],
        )


def gotify(by: Context, chat: Receiver, name: str = "phone", kinds: tuple[str, ...] = EVERY) -> UUID:
    """A channel of somebody's own service, with a secret in its address."""
    made = add_channel(by, name=name, address=f"gotify://{chat.place}/SecretOfMine", kinds=kinds)
    return UUID(made)


def time_passes(approval_id: UUID, hours: float) -> None:
    """A request is so much older than it was, and its reminder so much nearer. As the tables' owner."""
    request, notice = "approvals_approvalrequest", "notifications_notice"
    with _as_owner(request, notice) as cursor:
        earlier = [hours * 3600, approval_id]
        cursor.execute(
            f"UPDATE {request} SET requested_at = requested_at - make_interval(secs => %s), "
            "expires_at = expires_at - make_interval(secs => %s) WHERE id = %s",
            [hours * 3600, *earlier],
        )
        cursor.execute(
            f"UPDATE {notice} SET remind_at = remind_at - make_interval(secs => %s) WHERE approval_id = %s",
            earlier,
        )


def older(tenant_id: str, days: int) -> None:
    """A tenant's messages are so much older than they were."""
    with _as_owner("notifications_notification") as cursor:
        cursor.execute(
            "UPDATE notifications_notification SET created_at = created_at - make_interval(days => %s), "
            "set_aside_at = set_aside_at - make_interval(days => %s) WHERE tenant_id = %s",
            [days, days, tenant_id],
        )


@contextmanager
def _as_owner(*tables: str) -> Iterator[Any]:
    """The tables' owner, for whom their rows are not pinned for the while."""
    with transaction.atomic(using="owner"), connections["owner"].cursor() as cursor:
        for table in tables:
            cursor.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER pinned_columns")
        yield cursor
        for table in tables:
            cursor.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER pinned_columns")
            cursor.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
