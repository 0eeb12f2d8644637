"""What the search finds of the approvals."""

from django.db.models import Q
from django.urls import reverse

from approvals.models import ApprovalRequest
from approvals.selectors import visible
from factory.console.searching import SHOWN, Hit, SearchResults, Sought, finder
from factory.console.show import seen
from factory.kernel.context import Context
from factory.kernel.newest import containing, ids_among
from factory.kernel.permissions import may

NEWEST = 5_000
COLUMNS = ("summary", "requested_by", "proposal_hash")
_SAID = "summary ILIKE %(words)s OR requested_by ILIKE %(words)s OR proposal_hash = %(hash)s"


@finder(20)
def approvals(ctx: Context, what: Sought) -> SearchResults | None:
    """Requests by id or hash, by whoever asked, or by words of their summary."""
    if not may(ctx, "ListApprovals"):
        return None
    looked = f"Among the newest {NEWEST:,} that you may see."
    if what.id is not None:
        rows = visible(ctx).filter(Q(pk=what.id) | Q(run_id=what.id)).order_by("-requested_at")
        return SearchResults(
            "Approvals", tuple(_hit(row, exact=row.pk == what.id) for row in rows[:SHOWN]), looked
        )
    newest = visible(ctx).order_by("-requested_at", "-id")
    params = {"words": containing(what.text), "hash": what.text}
    ids = ids_among(newest, NEWEST, COLUMNS, _SAID, params, SHOWN)
    return SearchResults("Approvals", tuple(_hit(row) for row in newest.filter(pk__in=ids)), looked)


def _hit(row: ApprovalRequest, *, exact: bool = False) -> Hit:
    return Hit(
        title=seen(row.summary),
        url=reverse("admin:approvals_approvalrequest_change", args=[row.id]),
        state=row.state,
        note=f"{row.action_class}, asked by {seen(row.requested_by)}, {row.requested_at:%d %b %Y %H:%M} UTC",
        exact=exact,
    )
