"""Several answers from the list: first what would be decided, then, from that page, each by itself."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.views.decorators.http import require_POST

from approvals.admin.page import right_before, voted_already
from approvals.commands import MOST_AT_ONCE, Item, decide_each
from approvals.models import ApprovalRequest
from approvals.selectors import ApprovalView, approval_view, visible, votes_judged
from factory.admin.scope import as_uuid, context_of
from factory.context import Context
from factory.errors import InvalidInput
from factory.tenancy import reading


class Several:
    """The list's actions. Nothing is decided by choosing rows: the page that follows names each hash."""

    admin_site: Any
    get_queryset: Callable[[HttpRequest], QuerySet[ApprovalRequest]]

    def several_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_POST(self.decide_many_view))
        return [path("decide-many/", view, name="approvals_decide_many")]

    @admin.action(description="Approve the selected…")
    def approve_selected(self, request: HttpRequest, queryset: QuerySet[ApprovalRequest]) -> HttpResponse:
        return self._ask_about(request, queryset, "approve")

    @admin.action(description="Reject the selected…")
    def reject_selected(self, request: HttpRequest, queryset: QuerySet[ApprovalRequest]) -> HttpResponse:
        return self._ask_about(request, queryset, "reject")

    def _ask_about(
        self, request: HttpRequest, queryset: QuerySet[ApprovalRequest], decision: str
    ) -> HttpResponse:
        """What would be decided, each with its version and hash: nothing is, before it is sent from here."""
        ctx = context_of(request)
        chosen = list(self._chosen(request, queryset)[: MOST_AT_ONCE + 1])
        with reading(ctx):
            views = [approval_view(row) for row in chosen[:MOST_AT_ONCE]]
            items = [(view, _why_not(ctx, view, decision)) for view in views]
        context = {
            **self.admin_site.each_context(request),
            "title": f"{decision.capitalize()} several",
            "opts": None,
            "decision": decision,
            "items": items,
            "sent": sum(not why_not for _, why_not in items),
            "too_many": len(chosen) > MOST_AT_ONCE,
            "most": MOST_AT_ONCE,
        }
        response = TemplateResponse(request, "approvals/several.html", context)
        response.render()
        return response

    def _chosen(self, request: HttpRequest, queryset: QuerySet[ApprovalRequest]) -> QuerySet[ApprovalRequest]:
        """What was ticked, also where it has left the view that was shown: then the page says why."""
        if request.POST.get("select_across") == "1":
            return queryset
        ticked = [found for text in request.POST.getlist("_selected_action") if (found := as_uuid(text))]
        return self.get_queryset(request).filter(pk__in=ticked).order_by("-requested_at", "-id")

    def decide_many_view(self, request: HttpRequest) -> HttpResponse:
        """Each row by itself, by the one command; then what became of each."""
        ctx, sent = context_of(request), request.POST
        reason = sent.get("reason", "").strip()
        items = [
            _item(text, sent.get("decision", ""), reason) for text in sent.getlist("seen")[:MOST_AT_ONCE]
        ]
        outcomes = decide_each(ctx, items)
        with reading(ctx):
            known = {
                row.id: row.summary for row in visible(ctx).filter(pk__in=[i.approval_id for i in items])
            }
        context = {
            **self.admin_site.each_context(request),
            "title": "What became of each",
            "opts": None,
            "outcomes": [(o, known.get(o.approval_id, "a request that is not here")) for o in outcomes],
            "done": sum(o.view is not None for o in outcomes),
        }
        return TemplateResponse(request, "approvals/outcomes.html", context)


def _why_not(ctx: Context, view: ApprovalView, decision: str) -> str:
    """Why a chosen request is left out of what is sent; empty where it is not."""
    if not view.is_pending:
        return f"It is {view.state}: there is nothing left to decide."
    right, refused = right_before(ctx, view)
    if right is None:
        return refused.detail if refused else ""
    return voted_already(right, votes_judged(view)) if decision == "approve" else ""


def _item(text: str, decision: str, reason: str) -> Item:
    """One row of the form: id, version and hash as they were shown."""
    approval_id, version, proposal_hash = [*text.split(" "), "", ""][:3]
    found = as_uuid(approval_id)
    if found is None:
        raise Http404
    return Item(found, decision, number_of(version), proposal_hash, reason)


def number_of(text: str) -> int:
    """The version that a page sent back."""
    try:
        return int(text)
    except ValueError:
        raise InvalidInput("The page did not send the version that it showed. Reload it.") from None
