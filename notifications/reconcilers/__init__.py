"""What finds the messages that are due, and the requests whose time is nearly over."""

from typing import ClassVar

from factory.kernel.context import Context
from factory.kernel.reconciling import DueItem, Reconciler
from notifications.commands import remind_of_expiry
from notifications.reconcilers.sending import send_one


class NotificationSender(Reconciler):
    """Sends what is due, the first time or again. Several share the work row by row."""

    name: ClassVar[str] = "NotificationSender"
    every: ClassVar[str] = "*/1 * * * *"
    batch: ClassVar[int] = 50
    seconds: ClassVar[float] = 20.0  # a try that begins at the end of a round is still within a job's time

    def find_sql(self) -> str:
        return (
            "SELECT coalesce(due_at, created_at) AS due_at, id, tenant_id, '' AS key "
            "FROM notifications_notification "
            "WHERE sent_at IS NULL AND set_aside_at IS NULL AND dropped_at IS NULL "
            "AND (due_at IS NULL OR due_at <= clock_timestamp()) "
            "AND (claimed_until IS NULL OR claimed_until <= clock_timestamp())"
        )

    def repair(self, ctx: Context, due: DueItem) -> None:
        send_one(ctx, due.id)


class ExpiryReminder(Reconciler):
    """Reminds, once, when a quarter of a request's time is left."""

    name: ClassVar[str] = "ExpiryReminder"
    every: ClassVar[str] = "*/1 * * * *"

    def find_sql(self) -> str:
        return (
            "SELECT remind_at AS due_at, id, tenant_id, '' AS key FROM notifications_notice "
            "WHERE remind_at <= clock_timestamp() AND reminded_at IS NULL"
        )

    def repair(self, ctx: Context, due: DueItem) -> None:
        remind_of_expiry(ctx, notice_id=due.id)
