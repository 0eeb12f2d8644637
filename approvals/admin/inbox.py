"""The approvals inbox: the list, the decision page, and the one act on it."""

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import DateTimeField, Func, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from approvals.admin.actions.bulk import Several, number_of
from approvals.admin.detail.decision import SOON, decision_page, moved_on, standing
from approvals.admin.tables.inbox_filters import (
    ALL,
    MINE,
    OVER,
    WORDS,
    ByProject,
    Whose,
    by_class,
    by_state,
    chosen_view,
    views_of,
)
from approvals.commands import decide_approval
from approvals.models import ApprovalRequest
from approvals.policy.floor import EVERY_APPROVER
from approvals.selectors import (
    ApprovalView,
    approval,
    may_see_proposal,
    proposal,
    refusal_for,
    visible,
    who_may_decide,
)
from approvals.states import ApprovalState, SubjectType
from approvals.subjects import why_unanswerable
from factory.console.base import OwnPageAdmin
from factory.console.drafts import forget_words, keep_words, kept_words
from factory.console.lists.columns import Column, column
from factory.console.scope import context_of
from factory.console.show import badge, link, outline, seen, short, span, timed
from factory.console.site import site
from factory.kernel.context import Context
from factory.kernel.errors import DomainError, NotFound
from factory.kernel.hashing import canonical
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading

DONE = {
    "approve": "Approved. The agent may do exactly this, once.",
    "reject": "Rejected. Nothing was done.",
    "request_changes": "Sent back with your reason. The agent proposes again.",
}


SENT = {"approve": "Approve", "reject": "Reject", "request_changes": "Request changes"}

WITHOUT_RUN = (SubjectType.PUBLICATION, SubjectType.WAIVER)


@admin.register(ApprovalRequest, site=site)
class InboxAdmin(Several, OwnPageAdmin[ApprovalRequest]):
    """Questions that agents ask before they act. Each is about exactly one proposal, by its hash."""

    view_operation = "ListApprovals"
    actions = ("approve_selected", "reject_selected")
    list_display = ("what", "klass", "status", "where", "run", "asked_by", "age", "ends")
    list_display_links = None
    list_filter = (Whose, by_class, ByProject, by_state)
    list_before_template = "approvals/inbox_about.html"
    nothing_title = "Nothing waits for you."
    nothing_yet = "When an agent asks before it acts, its question stands here with the time left to answer."
    list_select_related = ("environment", "project")
    heading = "Approvals"
    file_headings = {"age": "requested", "ends": "expires"}
    large, recent_words, everything = True, ("summary",), f"?whose={ALL}"
    search_fields = ("requested_by", "run_id", "proposal_hash")
    search_help_text = "Words of a recent question, who asked, a run's id, a proposal's hash"
    ordering = ("-requested_at", "-id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApprovalRequest]:
        at = Func(function="clock_timestamp", output_field=DateTimeField())
        return visible(context_of(request)).annotate(at=at)

    def get_actions(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Nobody is asked to choose rows where every one is decided, or who could decide none."""
        could = context_of(request).actor.roles & set(EVERY_APPROVER)
        if chosen_view(request) in OVER or not could:
            return {}
        return super().get_actions(request, *args, **kwargs)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        view = chosen_view(request)
        told = {"views": views_of(request), "view_is_mine": view == MINE}
        title, words = WORDS[view]
        told |= {"view_title": title, "view_words": words}
        return super().changelist_view(request, {**told, **(extra_context or {})})

    def get_urls(self) -> list[URLPattern]:
        own = [
            path(
                "<uuid:approval_id>/decide/",
                self.admin_site.admin_view(require_POST(self.decide_view)),
                name="approvals_decide",
            ),
            path(
                "<uuid:approval_id>/break-glass/",
                self.admin_site.admin_view(self.break_glass_view),
                name="approvals_break_glass",
            ),
            path(
                "<uuid:approval_id>/proposal/",
                self.admin_site.admin_view(self.proposal_view),
                name="approvals_proposal",
            ),
        ]
        return [*own, *self.several_urls(), *super().get_urls()]

    def break_glass_view(self, request: HttpRequest, approval_id: UUID) -> HttpResponse:
        """The last resort, on a page of its own: nobody comes here by a slip of the hand."""
        if request.method == "POST":
            return self._decide(request, approval_id, break_glass=True)
        ctx = context_of(request)
        with reading(ctx):
            view = _found(ctx, approval_id)
            return self._glass(request, ctx, view)

    def decide_view(self, request: HttpRequest, approval_id: UUID) -> HttpResponse:
        """Send what was on the screen to the one command, and say what came of it."""
        return self._decide(request, approval_id)

    def _decide(self, request: HttpRequest, approval_id: UUID, *, break_glass: bool = False) -> HttpResponse:
        ctx = context_of(request)
        decision, reason = request.POST.get("decision", ""), request.POST.get("reason", "").strip()
        try:
            view = decide_approval(
                ctx,
                approval_id=approval_id,
                decision=decision,
                version=number_of(request.POST.get("version", "")),
                proposal_hash=request.POST.get("proposal_hash", ""),
                reason=reason,
                break_glass=break_glass,
            )
        except NotFound as missing:
            raise Http404(missing.detail) from missing
        except DomainError as refusal:
            return self.page_of(request, approval_id, refusal=refusal)
        forget_words(request)
        messages.success(request, _said(view, decision))
        return HttpResponseRedirect(reverse("admin:approvals_approvalrequest_change", args=[approval_id]))

    def _glass(self, request: HttpRequest, ctx: Context, view: ApprovalView) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": "Break-glass",
            "opts": self.opts,
            "view": view,
            "refused": refusal_for(ctx, view, break_glass=True),
            "stops": why_unanswerable(view),
            "kept_reason": kept_words(request, _subject_of(view)).get("reason", ""),
            "passed_over": [c for c in who_may_decide(view.id) if c.may_decide],
        }
        response = TemplateResponse(request, "approvals/break_glass.html", context)
        response.render()
        return response

    def proposal_view(self, request: HttpRequest, approval_id: UUID) -> HttpResponse:
        """The proposal exactly as it was hashed, as a file: never shown by the browser as a page."""
        ctx = context_of(request)
        with reading(ctx):
            view = _found(ctx, approval_id)
            if not may_see_proposal(ctx, view):
                raise Http404
            content = canonical(proposal(approval_id).content)
        response = HttpResponse(content, content_type="application/octet-stream")
        response["Content-Disposition"] = f'attachment; filename="proposal-{approval_id}.json"'
        return response

    def page_of(
        self,
        request: HttpRequest,
        approval_id: UUID,
        *,
        refusal: DomainError | None = None,
    ) -> HttpResponse:
        ctx = context_of(request)
        with reading(ctx):
            view = _found(ctx, approval_id)
            if refusal is None and request.GET.get("part") == "standing":
                return _rendered(request, "approvals/standing.html", standing(ctx, view))
            written = request.POST.get("reason", "").strip()
            if refusal is not None and written:
                keep_words(request, _subject_of(view), {"reason": written})
            told = decision_page(ctx, view)
            context = {
                **self.admin_site.each_context(request),
                **told,
                **(moved_on(ctx, told) if refusal else {}),
                "title": "Decision",
                "opts": self.opts,
                "refusal": refusal,
                "kept_reason": written or kept_words(request, _subject_of(view)).get("reason", ""),
                "sent": request.POST,
                "sent_word": SENT.get(request.POST.get("decision", ""), "no known answer"),
            }
            status = refusal.http_status if refusal else 200
            return _rendered(request, "approvals/decision.html", context, status)

    @column("what", "summary")
    def what(self, row: ApprovalRequest) -> SafeString:
        return link(reverse("admin:approvals_approvalrequest_change", args=[row.id]), seen(row.summary))

    klass = Column("class", "action_class", outline)

    @column("state", lambda row: " ".join((row.state, *_marks(row))))
    def status(self, row: ApprovalRequest) -> SafeString:
        marks = (badge(row.state), *map(outline, _marks(row)))
        return format_html_join(" ", "{}", ((mark,) for mark in marks))

    @column("project and environment", lambda row: " ".join(_where(row)))
    def where(self, row: ApprovalRequest) -> SafeString | str:
        project, *environment = _where(row)
        if row.environment is None and row.subject_type == SubjectType.WAIVER:
            return seen(project)  # it names its environments itself
        return format_html("{}<small>{}</small>", seen(project), *(environment or ["no environment"]))

    @column("run", lambda row: row.subject_type if row.subject_type in WITHOUT_RUN else row.run_id)
    def run(self, row: ApprovalRequest) -> SafeString | str:
        if row.subject_type in WITHOUT_RUN:
            return row.subject_type
        url = reverse("admin:runs_run_change", args=[row.run_id])
        return link(url, format_html("run {}", short(row.run_id)))

    asked_by = Column("asked by", "requested_by")

    @column("age", "requested_at", in_files="requested")
    def age(self, row: Any) -> SafeString:
        return timed(row.requested_at, span((row.at - row.requested_at).total_seconds()))

    @column(
        "expires in",
        lambda row: row.expires_at if row.state == ApprovalState.PENDING else None,
        in_files="expires",
    )
    def ends(self, row: Any) -> SafeString | str:
        if row.state != ApprovalState.PENDING:
            return "–"
        left = (row.expires_at - row.at).total_seconds()
        if left <= 0:
            return timed(row.expires_at, "has expired")
        if left <= SOON * (row.expires_at - row.requested_at).total_seconds():
            return format_html(
                '<span class="fc-badge bad">{}</span>', timed(row.expires_at, f"{span(left)}, soon")
            )
        return format_html('<span class="fc-ends">{}</span>', timed(row.expires_at, span(left)))


def _marks(row: ApprovalRequest) -> list[str]:
    """Return what else is said beside the state of a request."""
    pending = row.state == ApprovalState.PENDING
    marks = {
        f"{row.votes} of {row.quorum}": pending and row.quorum > 1,
        "in advance": row.waiver_id is not None,
        "break-glass": row.break_glass,
        "too few approvers": row.nobody_eligible and pending,
    }
    return [words for words, holds in marks.items() if holds]


def _where(row: ApprovalRequest) -> list[str]:
    """Return the names of a request's project and of its environment, if it has one."""
    project = row.project.name if row.project else "the whole tenant"
    return [project, row.environment.slug] if row.environment else [project]


def _rendered(
    request: HttpRequest, template: str, context: dict[str, Any], status: int = 200
) -> TemplateResponse:
    """Rendered while the transaction that it is read in lasts."""
    response = TemplateResponse(request, template, context, status=status)
    response.render()
    return response


def _found(ctx: Context, approval_id: UUID) -> ApprovalView:
    if not may(ctx, "ReadApproval") or not visible(ctx).filter(pk=approval_id).exists():
        raise Http404
    return approval(approval_id)


def _subject_of(view: ApprovalView) -> str:
    """Return what a decision is about, also where the next request asks for it anew."""
    return f"decision {view.step_id or view.subject_id}"


def _said(view: ApprovalView, decision: str) -> str:
    if view.is_pending:
        return f"Your approval is kept: {view.votes} of {view.quorum}. Nothing happens before the last one."
    if decision == "approve" and view.consumed_by_its_decision:
        return "Approved. What it was about has gone on."
    return DONE[decision]
