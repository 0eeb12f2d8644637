"""The first page's chart about approvals."""

from datetime import timedelta

from django.template.defaultfilters import pluralize

from approvals.selectors.ages import NAMES, NEWEST, Ages, ages
from factory.console.charts import ColumnPart, pairs
from factory.console.dashboard import Chart, DashboardQuery, Table, chart, in_words
from factory.console.show import span
from factory.kernel.permissions import may


@chart(30)
def approval_age(look: DashboardQuery) -> Chart | None:
    """Return how old requests were when they were decided, and how old those are that wait."""
    if not may(look.ctx, "ListApprovals"):
        return None
    seen = look.window
    back = timedelta(days=7 if seen.span == "hours" else 14)
    found = ages(look.ctx, look.at - back, look.at)
    rows = list(zip(NAMES, found.decided, found.pending, strict=True))
    drawn = [
        (name, (ColumnPart("good", "decided", d), ColumnPart("wait", "pending", p))) for name, d, p in rows
    ]
    return Chart(
        key="ages",
        title=f"Approval age, last {back.days} days",
        finding=_found(found),
        plot=pairs(drawn) if any(found.decided) or any(found.pending) else None,
        legend=(("good", "decided, by how long it took"), ("wait", "pending now, by how long it has waited")),
        table=Table(("Age", "Decided", "Pending now"), tuple((n, str(d), str(p)) for n, d, p in rows)),
        empty="Nobody was asked anything in this time. How long decisions took, and how long those that wait "
        "have waited, stands here.",
    )


def _found(found: Ages) -> str:
    decided, pending = sum(found.decided), sum(found.pending)
    said = []
    if decided and found.half is not None:
        half = span(max(1, found.half.total_seconds()))
        said.append(
            f"One request was decided, within {half}."
            if decided == 1
            else f"Half of {'the newest ' if decided >= NEWEST else ''}{decided:,} requests were decided "
            f"within {half}."
        )
    if pending:
        late = (
            f"{in_words(found.late).lower()} of them past half of its time" if found.late else "none is late"
        )
        said.append(f"{in_words(pending)} {pluralize(pending, 'is,are')} pending; {late}.")
    elif said:
        said.append("None is pending.")
    return " ".join(said)
