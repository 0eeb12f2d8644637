"""Cancelling several runs from the list: each by its own command, with an outcome for each row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib.admin import AdminSite
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from factory.admin.scope import as_uuid, context_of
from factory.errors import DomainError
from factory.tenancy import reading
from runs.commands import cancel_run
from runs.models import Run

MOST = 100
Own = Callable[[HttpRequest], QuerySet[Run]]


@dataclass(frozen=True, slots=True)
class Row:
    """A run of the page, and, once it was asked to stop, what came of it."""

    run_id: UUID
    workflow_id: str
    state: str
    url: str
    outcome: str = ""
    refused: bool = False


def ask_about(site: AdminSite, request: HttpRequest, runs: Sequence[Run]) -> HttpResponse:
    """The page before: it cancels nothing."""
    return _page(site, request, [_row(run) for run in runs[:MOST]], done=False)


def cancel_many(site: AdminSite, request: HttpRequest, own: Own) -> HttpResponse:
    """Each of the place's runs that the form names is asked to stop; the page says what came of each."""
    named = [run_id for run_id in map(as_uuid, request.POST.getlist("run")[:MOST]) if run_id]
    with reading(context_of(request)):
        rows = [_row(run) for run in own(request).filter(pk__in=named).order_by("-created_at", "-id")]
    reason = request.POST.get("reason", "")
    return _page(site, request, [_cancel(request, row, reason) for row in rows], done=True)


def _page(site: AdminSite, request: HttpRequest, rows: Sequence[Row], *, done: bool) -> HttpResponse:
    context = {
        **site.each_context(request),
        "title": "Cancel runs",
        "rows": rows,
        "done": done,
        "back": reverse("admin:runs_run_changelist"),
        "url": reverse("admin:runs_cancel_many"),
    }
    return TemplateResponse(request, "runs/cancel_many.html", context)


def _row(run: Run) -> Row:
    url = reverse("admin:runs_run_change", args=[run.id])
    return Row(run.id, run.workflow_id, str(run.state), url)


def _cancel(request: HttpRequest, row: Row, reason: str) -> Row:
    try:
        state = cancel_run(context_of(request), run_id=row.run_id, reason=reason)
    except DomainError as refusal:
        told = f"{refusal.title}. {refusal.detail}"
        return Row(row.run_id, row.workflow_id, row.state, row.url, told, True)
    return Row(row.run_id, row.workflow_id, state, row.url, f"{state}; it was {row.state}.")
