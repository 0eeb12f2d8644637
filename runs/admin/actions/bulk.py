"""Cancelling several runs from the list: each by its own command, with an outcome for each row."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib.admin import AdminSite
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from factory.console.bulk import BulkResult, BulkResults, chosen, fates_of, keep_chosen, keep_fates
from factory.console.scope import as_uuid, context_of
from factory.kernel.bulk import one_by_one
from factory.kernel.errors import DomainError
from factory.kernel.tenancy import reading
from runs.commands import cancel_run
from runs.commands.cancel_run import checked
from runs.models import Run
from runs.states import RUN_OPEN, RUN_TERMINAL

MOST, ACT = 100, "cancel"
Own = Callable[[HttpRequest], QuerySet[Run]]


@dataclass(frozen=True, slots=True)
class CancelRow:
    """A run of the page, and, once it was asked to stop, what came of it."""

    run_id: UUID
    workflow_id: str
    state: str
    url: str
    fate: BulkResult | None = None

    @property
    def left_out(self) -> str:
        """Return why there is nothing to ask of it; empty of a run that can be stopped."""
        if self.state in RUN_TERMINAL:
            return "It is over already."
        return "" if self.state in RUN_OPEN else "It was asked to stop before, and is stopping."


def choose(request: HttpRequest, runs: QuerySet[Run]) -> HttpResponse:
    """Leads to the page before: nothing is cancelled."""
    with reading(context_of(request)):
        keys = list(runs.values_list("pk", flat=True)[:MOST])
    name = keep_chosen(request, ACT, keys)
    return HttpResponseRedirect(reverse("admin:runs_cancel_several", args=[name]))


def ask_about(site: AdminSite, request: HttpRequest, own: Own, name: str) -> HttpResponse:
    """The page before: it asks for the reason."""
    return _page(site, request, _rows(request, own, chosen(request, ACT, name)))


def cancel_many(site: AdminSite, request: HttpRequest, own: Own) -> HttpResponse:
    """Each of the place's runs that the form names is asked to stop; a page says what came of each."""
    named = [run_id for run_id in map(as_uuid, request.POST.getlist("run")[:MOST]) if run_id]
    rows, reason = _rows(request, own, named), request.POST.get("reason", "")
    try:
        checked(reason)
    except DomainError as refusal:
        return _page(site, request, rows, refusal=refusal)
    ctx = context_of(request)
    came = one_by_one(
        rows, lambda row: cancel_run(ctx, run_id=row.run_id, reason=reason), key=lambda row: row.run_id
    )
    name = keep_fates(request, ACT, [_fate(row, found) for row, found in came])
    return HttpResponseRedirect(reverse("admin:runs_cancelled", args=[name]))


def cancelled(site: AdminSite, request: HttpRequest, own: Own, name: str) -> HttpResponse:
    """Return what came of each, as it was told then, of the runs of this place."""
    fates = fates_of(request, ACT, name)
    told = {one.key: one for one in fates.each}
    rows = [
        CancelRow(row.run_id, row.workflow_id, told[row.run_id].state, row.url, told[row.run_id])
        for row in _rows(request, own, told)
    ]
    return _page(site, request, rows, fates=fates)


def _page(
    site: AdminSite,
    request: HttpRequest,
    rows: Sequence[CancelRow],
    *,
    fates: BulkResults | None = None,
    refusal: DomainError | None = None,
) -> HttpResponse:
    context = {
        **site.each_context(request),
        "title": "Cancel runs",
        "rows": rows,
        "fates": fates,
        "done": sum(row.fate is not None and not row.fate.status for row in rows),
        "asked": [row for row in rows if fates or not row.left_out],
        "left_out": [] if fates else [row for row in rows if row.left_out],
        "elsewhere": len(fates.each) - len(rows) if fates else 0,
        "refusal": refusal,
        "reason": request.POST.get("reason", ""),
        "back": reverse("admin:runs_run_changelist"),
        "url": reverse("admin:runs_cancel_many"),
    }
    status = refusal.http_status if refusal else 200
    return TemplateResponse(request, "runs/cancel_many.html", context, status=status)


def _rows(request: HttpRequest, own: Own, keys: Iterable[UUID]) -> list[CancelRow]:
    with reading(context_of(request)):
        runs = list(own(request).filter(pk__in=list(keys)).order_by("-created_at", "-id"))
    return [
        CancelRow(run.id, run.workflow_id, str(run.state), reverse("admin:runs_run_change", args=[run.id]))
        for run in runs
    ]


def _fate(row: CancelRow, found: str | DomainError) -> BulkResult:
    if isinstance(found, DomainError):
        return BulkResult.refused(row.run_id, row.state, found)
    return BulkResult(row.run_id, found, f"{found}; it was {row.state}.")
