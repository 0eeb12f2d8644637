"""What of the notifications stands on a person's first page."""

from django.conf import settings
from django.urls import reverse

from factory.console.dashboard import MOST, DashboardQuery, Need, Needs, needs
from factory.console.show import seen
from factory.kernel.permissions import may
from notifications.models import Notification
from notifications.selectors import set_aside


@needs(50)
def messages_set_aside(look: DashboardQuery) -> Needs | None:
    """Messages that did not arrive, for those who can send them again."""
    if not may(look.ctx, "RetryNotification") or not may(look.ctx, "ListNotifications"):
        return None
    found = set_aside(look.ctx, MOST + 1)
    return Needs(
        items=tuple(_need(row) for row in found[:4]),
        count=len(found),
        well="every message to people has arrived" if settings.FACTORY_EMAIL_ON else "",
        more_url=f"{reverse('admin:notifications_notification_changelist')}?state=Set+aside",
        more_label="All messages that did not arrive",
    )


def _need(row: Notification) -> Need:
    return Need(
        title=f"A message did not reach {seen(row.subject)}",
        url=reverse("admin:notifications_notification_change", args=[row.id]),
        state="Set aside",
        tone="bad",
        action="Look",
        since=row.set_aside_at or row.created_at,
        where=f"{row.notice.kind}, {row.attempts} tries. {seen(row.error)[:160]}",
    )
