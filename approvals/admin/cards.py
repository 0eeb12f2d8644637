"""What of the approvals stands on a person's first page."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.urls import reverse

from approvals.models import ApprovalRequest
from approvals.selectors import mine, visible
from factory import clock
from factory.admin.show import seen, span
from factory.admin.site import Card, Item, card
from factory.context import Context
from factory.identity.permissions import may


@card(10)
def waiting_for_me(ctx: Context) -> Card | None:
    """What this person may decide, the most urgent first."""
    if not may(ctx, "ListApprovals"):
        return None
    at = clock.now()
    rows = mine(ctx).select_related("environment").order_by("expires_at")[:6]
    inbox = reverse("admin:approvals_approvalrequest_changelist")
    return Card(
        title="Approvals that you may decide",
        items=tuple(_items(rows, at)),
        empty="Nothing waits for you. When an agent asks before an action, its question stands here.",
        more_url=f"{inbox}?whose=mine",
        more_label="Open the inbox",
        needs_you=True,
    )


def _items(rows: Iterable[ApprovalRequest], at: Any) -> Iterable[Item]:
    for row in rows:
        left = (row.expires_at - at).total_seconds()
        yield Item(
            title=seen(row.summary),
            url=reverse("admin:approvals_approvalrequest_change", args=[row.id]),
            state=row.action_class,
            tone="wait",
            note=f"asked by {row.requested_by} {span((at - row.requested_at).total_seconds())} ago, "
            + (f"ends in {span(left)}" if left > 0 else "its time is over"),
        )


LOOK_BACK = timedelta(days=14)


@card(15)
def decided_past_me(ctx: Context) -> Card | None:
    """What was decided by break-glass, past this person: they are the ones who can say that it was wrong."""
    if not may(ctx, "ListApprovals"):
        return None
    since = clock.now() - LOOK_BACK
    passed = visible(ctx).filter(break_glass=True, decided_at__gte=since)
    rows = passed.filter(passed_over__contains=[ctx.actor.subject]).order_by("-decided_at")[:6]
    items = tuple(
        Item(
            title=seen(row.summary),
            url=reverse("admin:approvals_approvalrequest_change", args=[row.id]),
            state=row.state,
            tone="bad",
            note=f"{row.decided_by} broke the glass: {seen(row.reason)}",
        )
        for row in rows
    )
    if not items:
        return None
    inbox = reverse("admin:approvals_approvalrequest_changelist")
    return Card(
        title="Decided past you",
        items=items,
        empty="",
        more_url=f"{inbox}?whose=break-glass",
        more_label="All that was decided by break-glass",
        needs_you=True,
    )
