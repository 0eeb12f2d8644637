"""What of the notifications stands on a person's first page."""

from django.urls import reverse

from factory.admin.show import seen
from factory.admin.site import Card, Item, card
from factory.context import Context
from factory.identity.permissions import may
from notifications.selectors import set_aside

SHOWS = 5


@card(order=26)
def messages_set_aside(ctx: Context) -> Card | None:
    """Only for those who can send again, and only when there is something."""
    if not may(ctx, "RetryNotification") or not may(ctx, "ListNotifications"):
        return None
    found = set_aside(ctx, SHOWS)
    if not found:
        return None
    items = tuple(
        Item(
            title=f"{row.notice.kind} for {seen(row.subject)}",
            url=reverse("admin:notifications_notification_change", args=[row.id]),
            state="set aside",
            tone="bad",
            note=seen(row.error)[:200],
        )
        for row in found
    )
    url = f"{reverse('admin:notifications_notification_changelist')}?state=Set+aside"
    return Card("Messages that did not arrive", items, more_url=url, more_label="All of them", needs_you=True)
