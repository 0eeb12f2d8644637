"""What of the approvals stands on a person's first page."""

from collections.abc import Iterable
from datetime import timedelta

from django.urls import reverse

from approvals.models import ApprovalRequest
from approvals.selectors import mine, visible
from approvals.states import ApprovalState, SubjectType
from factory.console.dashboard import (
    MOST,
    Card,
    CardLine,
    DashboardQuery,
    Figure,
    Need,
    Needs,
    card,
    count,
    figure,
    needs,
)
from factory.console.show import seen, span
from factory.kernel import clock
from factory.kernel.context import Context
from factory.kernel.permissions import may

SHOWN = 12
INBOX = "admin:approvals_approvalrequest_changelist"
KINDS = {
    SubjectType.RUN: "A request",
    SubjectType.SPEND: "A spend request",
    SubjectType.PUBLICATION: "A publication",
    SubjectType.WAIVER: "A request for a waiver",
}


@count("approvals")
def approvals_count(ctx: Context) -> int | None:
    """Return how many requests this person may decide now."""
    if not may(ctx, "ListApprovals"):
        return None
    found: int = mine(ctx).order_by().values("pk")[: MOST + 1].count()
    return found


@needs(20)
def waiting_for_me(look: DashboardQuery) -> Needs | None:
    """Return what this person may decide, the most urgent first."""
    if not may(look.ctx, "ListApprovals"):
        return None
    many = look.counts.get("approvals", 0)
    rows = list(mine(look.ctx).order_by("expires_at")[:SHOWN]) if many else []
    return Needs(
        items=tuple(_need(row) for row in rows),
        count=many,
        well="no request waits for you",
        more_url=f"{reverse(INBOX)}?whose=mine",
        more_label="All that you may decide",
    )


def _need(row: ApprovalRequest) -> Need:
    return Need(
        title=seen(row.summary),
        url=reverse("admin:approvals_approvalrequest_change", args=[row.id]),
        state="Pending",
        tone="wait",
        action="Decide",
        since=row.requested_at,
        ends_at=row.expires_at,
        klass=row.action_class,
        where=_where(row),
    )


def _where(row: ApprovalRequest) -> str:
    place = row.project.name if row.project else "the whole tenant"
    place += f", {row.environment.slug}" if row.environment else ""
    kind = KINDS[SubjectType(row.subject_type)] if row.subject_type != SubjectType.RUN else "Asked"
    told = f"{kind} in {place}, by {row.requested_by}."
    if row.quorum > 1:
        told += f" {row.votes} of {row.quorum} have approved."
    return told + (f" Run …{str(row.run_id)[-8:]}." if row.run_id else "")


@figure(30)
def oldest_pending(look: DashboardQuery) -> Figure | None:
    """Return what has waited for a person for the longest time, whoever that is."""
    if not may(look.ctx, "ListApprovals"):
        return None
    rows = visible(look.ctx).filter(state=ApprovalState.PENDING)
    row = rows.order_by("requested_at", "id").first()
    if row is None:
        return Figure("Oldest pending approval", "None", "Nobody is asked anything at the moment.")
    left = (row.expires_at - look.at).total_seconds()
    ends = f"it ends in {span(left)}, at {row.expires_at:%d %b %H:%M} UTC" if left > 0 else "its time is over"
    return Figure(
        "Oldest pending approval",
        span((look.at - row.requested_at).total_seconds()),
        f"{KINDS[SubjectType(row.subject_type)]} of {row.requested_by}; {ends}.",
        url=reverse("admin:approvals_approvalrequest_change", args=[row.id]),
    )


LOOK_BACK = timedelta(days=14)


@card(15)
def decided_past_me(ctx: Context) -> Card | None:
    """Return what was decided by break-glass, past this person: they are the ones who can say that it was
    wrong."""
    if not may(ctx, "ListApprovals"):
        return None
    since = clock.now() - LOOK_BACK
    passed = visible(ctx).filter(break_glass=True, decided_at__gte=since)
    rows = passed.filter(passed_over__contains=[ctx.actor.subject]).order_by("-decided_at")[:6]
    items = tuple(_passed(rows))
    if not items:
        return None
    return Card(
        title="Decided past you",
        items=items,
        more_url=f"{reverse(INBOX)}?whose=break-glass",
        more_label="All that was decided by break-glass",
        needs_you=True,
        aside=True,
    )


def _passed(rows: Iterable[ApprovalRequest]) -> list[CardLine]:
    return [
        CardLine(
            title=seen(row.summary),
            url=reverse("admin:approvals_approvalrequest_change", args=[row.id]),
            state=row.state,
            tone="bad",
            note=f"{row.decided_by} broke the glass: {seen(row.reason)}",
        )
        for row in rows
    ]
