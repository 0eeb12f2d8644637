"""Several answers from the list: first what would be decided, then, from that page, each by itself."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST

from approvals.admin.detail.decision import right_before
from approvals.admin.detail.labels import consequence
from approvals.commands import MOST_AT_ONCE, BulkDecision, BulkDecisionResult, decide_each
from approvals.models import MAX_REASON, ApprovalRequest
from approvals.selectors import ApprovalView, approval_view, voted_already, votes_judged
from approvals.states import SubjectType
from approvals.subjects import why_unanswerable
from factory.console.bulk import BulkResult, chosen, fates_of, keep_chosen, keep_fates
from factory.console.scope import as_uuid, context_of
from factory.kernel.context import Context
from factory.kernel.errors import DomainError, InvalidInput
from factory.kernel.reasons import remark
from factory.kernel.tenancy import reading

BULK = ("approve", "reject")
OF = {
    SubjectType.RUN: "A question of a run",
    SubjectType.SPEND: "Money of a run",
    SubjectType.PUBLICATION: "A publication",
    SubjectType.WAIVER: "A waiver",
}
"""What a request is of, where several kinds are rejected at once."""


class Several:
    """The list's actions. Nothing is decided by choosing rows: the page that follows names each hash."""

    admin_site: Any
    get_queryset: Callable[[HttpRequest], QuerySet[ApprovalRequest]]
    has_view_permission: Callable[..., bool]

    def several_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path(
                f"{decision}-several/<slug:name>/",
                view(partial(self.several_view, decision=decision)),
                name=f"approvals_{decision}_several",
            )
            for decision in BULK
        ] + [
            path("decide-many/", view(require_POST(self.decide_many_view)), name="approvals_decide_many"),
            path("decided/<slug:name>/", view(self.decided_view), name="approvals_decided"),
        ]

    @admin.action(description="Approve the selected…")
    def approve_selected(self, request: HttpRequest, queryset: QuerySet[ApprovalRequest]) -> HttpResponse:
        return self._choose(request, "approve")

    @admin.action(description="Reject the selected…")
    def reject_selected(self, request: HttpRequest, queryset: QuerySet[ApprovalRequest]) -> HttpResponse:
        return self._choose(request, "reject")

    def _choose(self, request: HttpRequest, decision: str) -> HttpResponse:
        """Leads to the page that shows what would be decided; one more than fits, so that it can say so."""
        with reading(context_of(request)):
            rows = self._chosen(request)[: MOST_AT_ONCE + 1]
            keys = list(rows.values_list("pk", flat=True))
        name = keep_chosen(request, decision, keys)
        return HttpResponseRedirect(reverse(f"admin:approvals_{decision}_several", args=[name]))

    def several_view(self, request: HttpRequest, name: str, decision: str) -> HttpResponse:
        return self._ask_about(request, chosen(request, decision, name), decision)

    def _ask_about(
        self, request: HttpRequest, keys: Sequence[UUID], decision: str, refusal: DomainError | None = None
    ) -> HttpResponse:
        """Show what would be decided, each with its version and hash: nothing is, before it is sent from
        here."""
        ctx = self._reader(request)
        with reading(ctx):
            rows = self.get_queryset(request).filter(pk__in=keys).order_by("-requested_at", "-id")
            views = [approval_view(row) for row in rows[:MOST_AT_ONCE]]
            items = [(view, _why_not(ctx, view, decision)) for view in views]
            going = [view for view, why_not in items if not why_not]
            context = {
                **self.admin_site.each_context(request),
                "title": f"{decision.capitalize()} several",
                "opts": ApprovalRequest._meta,
                "decision": decision,
                "going": going,
                "rejected": _rejected(going),
                "left_out": [(view, why_not) for view, why_not in items if why_not],
                "many": len(items),
                "too_many": len(keys) > MOST_AT_ONCE,
                "most": MOST_AT_ONCE,
                "refusal": refusal,
                "reason": request.POST.get("reason", ""),
            }
            status = refusal.http_status if refusal else 200
            return TemplateResponse(request, "approvals/several.html", context, status=status).render()

    def _reader(self, request: HttpRequest) -> Context:
        if not self.has_view_permission(request):
            raise PermissionDenied("Approvals are read by members of a project.")
        return context_of(request)

    def _chosen(self, request: HttpRequest) -> QuerySet[ApprovalRequest]:
        """Return what was ticked, also where it has left the view that was shown: then the page says why."""
        ticked = [found for text in request.POST.getlist("_selected_action") if (found := as_uuid(text))]
        return self.get_queryset(request).filter(pk__in=ticked).order_by("-requested_at", "-id")

    def decide_many_view(self, request: HttpRequest) -> HttpResponse:
        """Each row by itself, by the one command; then a page that says what became of each."""
        ctx, sent = context_of(request), request.POST
        decision, reason = sent.get("decision", ""), sent.get("reason", "").strip()
        items = [_item(text, decision, reason) for text in sent.getlist("seen")[:MOST_AT_ONCE]]
        try:
            remark(reason, most=MAX_REASON)
        except InvalidInput as refusal:
            return self._ask_about(request, [one.approval_id for one in items], decision, refusal)
        name = keep_fates(request, "decide", map(_fate, decide_each(ctx, items)))
        return HttpResponseRedirect(reverse("admin:approvals_decided", args=[name]))

    def decided_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Show what became of each, as it was told then, for who sent it."""
        ctx, fates = self._reader(request), fates_of(request, "decide", name)
        with reading(ctx):
            rows = self.get_queryset(request).filter(pk__in=[one.key for one in fates.each])
            known = {row.id: row.summary for row in rows}
            context = {
                **self.admin_site.each_context(request),
                "title": "What became of each",
                "opts": ApprovalRequest._meta,
                "fates": fates,
                "outcomes": [
                    (one, known.get(one.key, "a request that is not here"), one.key in known)
                    for one in fates.each
                ],
            }
            return TemplateResponse(request, "approvals/outcomes.html", context).render()


def _fate(outcome: BulkDecisionResult) -> BulkResult:
    if outcome.refusal is not None:
        return BulkResult.refused(outcome.approval_id, "refused", outcome.refusal)
    view = outcome.view
    assert view is not None  # an outcome is one of the two
    kept = f"Your approval is kept: {view.votes} of {view.quorum}." if view.is_pending else ""
    return BulkResult(view.id, str(view.state), kept)


def _rejected(views: Sequence[ApprovalView]) -> list[str]:
    """Return what rejecting them does, once for each kind of request; of several kinds it says which."""
    told = {consequence(view)["reject"]: OF[SubjectType(view.subject_type)] for view in views}
    return [f"{of}: {words}" for words, of in told.items()] if len(told) > 1 else list(told)


def _why_not(ctx: Context, view: ApprovalView, decision: str) -> str:
    """Return why a chosen request is left out of what is sent; empty where it is not."""
    if not view.is_pending:
        return f"It is {view.state}: there is nothing left to decide."
    if stops := why_unanswerable(view):
        return stops
    right, refused = right_before(ctx, view)
    if right is None:
        return refused.detail if refused else ""
    return voted_already(right, votes_judged(view)) if decision == "approve" else ""


def _item(text: str, decision: str, reason: str) -> BulkDecision:
    """One row of the form: id, version and hash as they were shown."""
    approval_id, version, proposal_hash = [*text.split(" "), "", ""][:3]
    found = as_uuid(approval_id)
    if found is None:
        raise Http404
    return BulkDecision(found, decision, number_of(version), proposal_hash, reason)


def number_of(text: str) -> int:
    """The version that a page sent back."""
    try:
        return int(text)
    except ValueError:
        raise InvalidInput("The page did not send the version that it showed. Reload it.") from None
