"""The page of a run and its acts: cancel it, settle what is uncertain in it."""

from decimal import Decimal
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from factory.console.asking import one_asked
from factory.console.base import OwnPageAdmin
from factory.console.lists.columns import Column, column
from factory.console.lists.filters import one_of
from factory.console.lists.pages import BaseList
from factory.console.scope import context_of
from factory.console.show import link, seen, short, when
from factory.console.site import site
from factory.kernel.amounts import cost, usd
from factory.kernel.errors import DomainError, InvalidInput
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading
from registry.selectors import known_workflows
from runs.admin.actions.bulk import ask_about, cancel_many, cancelled, choose
from runs.admin.actions.rerun import again_view
from runs.admin.detail.run import run_page
from runs.admin.detail.tabs import PARTS
from runs.admin.tables.attention import with_short_ids
from runs.commands import cancel_run, close_attention, lift_freeze, resolve_step
from runs.commands.cancel_run import MAY_CANCEL
from runs.models import Run
from runs.states import FailureClass, RunState
from usage.selectors import usage_of_runs


@admin.register(Run, site=site)
class RunAdmin(OwnPageAdmin[Run]):
    """Work that was asked for: who asked, exactly what runs, where it stands and what it cost."""

    view_operation = "ReadRun"
    nothing_yet = "A run is submitted over the API, with manage.py submit, or from a run template."
    large = True
    list_display = ("which", "status", "asked_by", "asked", "ended", "why", "cost")
    list_display_links = None
    list_filter = (
        "state",
        one_of("workflow_id", "workflow", lambda request: known_workflows()),
        one_of("failure_class", "failure", FailureClass.values, {"state": RunState.FAILED}),
    )
    search_fields = ("id", "requested_by", "idempotency_key", "workflow_id")
    search_help_text = "A whole run id, key, workflow, or address of who asked"
    ordering = ("-created_at", "-id")

    actions: ClassVar[Any] = ("cancel_selected",)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path("cancel/", view(require_POST(self.cancel_many_view)), name="runs_cancel_many"),
            path("cancel-several/<slug:name>/", view(self.cancel_several_view), name="runs_cancel_several"),
            path("cancelled/<slug:name>/", view(self.cancelled_view), name="runs_cancelled"),
            path("<uuid:run_id>/again/", view(self.again_view), name="runs_again"),
            path("<uuid:run_id>/cancel/", view(require_POST(self.cancel_view)), name="runs_cancel"),
            path("<uuid:run_id>/lift/", view(require_POST(self.lift_view)), name="runs_lift"),
            path(
                "<uuid:run_id>/steps/<uuid:step_id>/settle/",
                view(require_POST(self.settle_view)),
                name="runs_settle",
            ),
            path(
                "<uuid:run_id>/steps/<uuid:step_id>/attention/",
                view(require_POST(self.attention_view)),
                name="runs_attention",
            ),
        ]
        return [*own, *super().get_urls()]

    def get_actions(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Nobody is asked to choose runs who could have none to cancel."""
        ctx = context_of(request)
        if not ctx.actor.roles & MAY_CANCEL and not may(ctx, "SubmitRun"):
            return {}
        return super().get_actions(request, *args, **kwargs)

    @admin.action(description="Cancel the chosen runs…")
    def cancel_selected(self, request: HttpRequest, rows: QuerySet[Run]) -> HttpResponse:
        """Leads to the page that asks for the reason; nothing is cancelled yet."""
        return choose(request, rows)

    def cancel_several_view(self, request: HttpRequest, name: str) -> HttpResponse:
        return ask_about(self.admin_site, request, self.get_queryset, name)

    def cancelled_view(self, request: HttpRequest, name: str) -> HttpResponse:
        return cancelled(self.admin_site, request, self.get_queryset, name)

    def cancel_many_view(self, request: HttpRequest) -> HttpResponse:
        return cancel_many(self.admin_site, request, self.get_queryset)

    def again_view(self, request: HttpRequest, run_id: UUID) -> HttpResponse:
        return again_view(self.admin_site, request, run_id)

    def cancel_view(self, request: HttpRequest, run_id: UUID) -> HttpResponse:
        ctx, reason = context_of(request), request.POST.get("reason", "")
        return self.act(
            request,
            lambda: cancel_run(ctx, run_id=run_id, reason=reason),
            done="The run was asked to stop. What has happened already stays visible.",
            then=_url(run_id),
        )

    def lift_view(self, request: HttpRequest, run_id: UUID) -> HttpResponse:
        ctx, reason = context_of(request), request.POST.get("reason", "")
        return self.act(
            request,
            lambda: lift_freeze(ctx, run_id=run_id, reason=reason),
            done="The freeze is lifted: the run goes on.",
            then=_url(run_id),
        )

    def settle_view(self, request: HttpRequest, run_id: UUID, step_id: UUID) -> HttpResponse:
        ctx, sent = context_of(request), request.POST
        try:
            resolve_step(
                ctx,
                run_id=run_id,
                step_id=step_id,
                resolution=sent.get("resolution", ""),
                evidence=sent.get("evidence", ""),
                version=_number(sent.get("version", "")),
            )
        except DomainError as refusal:
            return self.page_of(request, run_id, refusal=refusal, kept=sent.get("evidence", ""))
        return self.act(request, lambda: None, done="Settled, with your evidence.", then=_url(run_id))

    def attention_view(self, request: HttpRequest, run_id: UUID, step_id: UUID) -> HttpResponse:
        ctx, sent = context_of(request), request.POST
        return self.act(
            request,
            lambda: close_attention(
                ctx,
                run_id=run_id,
                step_id=step_id,
                reason=sent.get("reason", ""),
                version=_number(sent.get("version", "")),
            ),
            done="Closed, with what you found. It stays on record.",
            then=_url(run_id),
        )

    def page_of(
        self, request: HttpRequest, run_id: UUID, *, refusal: DomainError | None = None, kept: str = ""
    ) -> HttpResponse:
        ctx = context_of(request)
        with reading(ctx):
            run = (
                self.get_queryset(request)
                .select_related("environment", "policy", "snapshot", "template")
                .filter(pk=run_id)
                .first()
            )
            if run is None:
                raise Http404
            context = {
                **self.admin_site.each_context(request),
                **run_page(ctx, run, one_asked(request, "tab", PARTS, "", "Steps and attempts are shown.")),
                "title": f"Run of {seen(run.workflow_id)} …{str(run.id)[-8:]}",
                "opts": self.opts,
                "refusal": refusal,
                "kept": kept,
            }
            status = refusal.http_status if refusal else 200
            response = TemplateResponse(request, "runs/run.html", context, status=status)
            response.render()
        return response

    @column("run", lambda row: f"{row.workflow_id} {row.id}")
    def which(self, row: Run) -> SafeString:
        return link(_url(row.id), format_html("{} {}", seen(row.workflow_id), short(row.id)))

    asked_by = Column("asked by", "requested_by", seen)
    asked = Column("accepted", "created_at", when)
    ended = Column("ended", "finished_at", when)
    why = Column(
        "why",
        lambda row: f"{row.failure_class}: {row.reason}" if row.failure_class else row.reason,
        lambda words: with_short_ids(words, 120),
    )

    cost = Column(
        "cost", lambda row: cost(row.used.cost, row.used.uncertain) if row.used else usd(Decimal(0))
    )

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> Any:
        return CostedList


class CostedList(BaseList):
    """A list whose rows carry what the runs have used; None of one that has used nothing."""

    @staticmethod
    def carry(request: HttpRequest, rows: list[Any]) -> None:
        found = usage_of_runs([row.pk for row in rows])
        for row in rows:
            row.used = found.get(row.pk)


def _url(run_id: UUID) -> str:
    return reverse("admin:runs_run_change", args=[run_id])


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInput("The page did not send the version that it showed. Reload it.") from None
