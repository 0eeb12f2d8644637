"""What the search finds of the approvals."""

from django.db.models import Q
from django.urls import reverse

from approvals.models import ApprovalRequest
from approvals.selectors import visible
from factory.admin.searching import SHOWN, Found, Hit, Sought, finder
from factory.admin.show import seen
from factory.context import Context
from factory.identity.permissions import may

NEWEST = 5_000


@finder(20)
def approvals(ctx: Context, what: Sought) -> Found | None:
    """Requests by id or hash, by whoever asked, or by words of their summary."""
    if not may(ctx, "ListApprovals"):
        return None
    looked = f"Among the newest {NEWEST:,} that you may see."
    if what.id is not None:
        rows = visible(ctx).filter(Q(pk=what.id) | Q(run_id=what.id)).order_by("-requested_at")
        return Found("Approvals", tuple(_hit(row, exact=row.pk == what.id) for row in rows[:SHOWN]), looked)
    newest = visible(ctx).order_by("-requested_at", "-id").values("pk")[:NEWEST]
    said = Q(summary__icontains=what.text) | Q(requested_by__icontains=what.text)
    rows = visible(ctx).filter(said | Q(proposal_hash=what.text), pk__in=newest)
    hits = tuple(_hit(row) for row in rows.order_by("-requested_at", "-id")[:SHOWN])
    return Found("Approvals", hits, looked)


def _hit(row: ApprovalRequest, *, exact: bool = False) -> Hit:
    return Hit(
        title=seen(row.summary),
        url=reverse("admin:approvals_approvalrequest_change", args=[row.id]),
        state=row.state,
        note=f"{row.action_class}, asked by {seen(row.requested_by)}, {row.requested_at:%d %b %Y %H:%M} UTC",
        exact=exact,
    )
