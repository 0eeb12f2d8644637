"""Pages of run templates: what each fixes, a new one, a run from one, its waivers, and its end."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID, uuid4

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString

from approvals.selectors import current_policy, waivers_of_template
from factory.api.strict_json import Malformed, loads
from factory.console.base import OwnPageAdmin
from factory.console.confirming import Act, Confirmation, act_on
from factory.console.links import names_of
from factory.console.lists.columns import Column, column
from factory.console.scope import as_moment, as_uuid, context_of
from factory.console.show import link, seen, when
from factory.console.site import site
from factory.kernel.errors import DomainError, FieldError, InvalidInput
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading
from projects.selectors import environments
from registry.selectors import ReleaseView, pinnable, workflow
from runs.admin.detail.inputs import Wanted, wanted
from runs.commands import create_run_template, request_waiver, retire_run_template
from runs.models import RunTemplate
from runs.rest.submissions import read_template, submit
from runs.selectors import newest_of_template, template, templates
from runs.states import TemplateState

Made = Callable[[], tuple[str, str]]
"""Does what a form asks for; what to say then, and where to go."""
WHO = {
    "SubmitRun": "A Requester, an Operator or a workspace admin starts runs",
    "CreateRunTemplate": "An Operator or a workspace admin makes templates",
    "RequestWaiver": "An Operator or a workspace admin asks for waivers",
    "RetireRunTemplate": "An Operator or an administrator retires templates",
}
"""Who does what here: told to whom may not."""


@admin.register(RunTemplate, site=site)
class TemplateAdmin(OwnPageAdmin[RunTemplate]):
    """Kinds of runs: each fixes a workflow, a model profile, limits and what the input may be."""

    view_operation = "ListRunTemplates"
    own_page = "runs/template.html"
    list_display = ("what", "follows", "profile", "limit", "status", "made_by", "made")
    list_display_links = None
    list_filter = ("state",)
    nothing_yet = "A template fixes what runs of a kind have in common. Make a template makes the first."
    search_fields = ("name", "workflow_id", "description", "created_by")
    search_help_text = "Words of a name, workflow or description, or who made it"
    ordering = ("-created_at", "-id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[RunTemplate]:
        return templates(context_of(request))

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path("new/", view(self.new_view), name="runs_new_template"),
            path("<uuid:template_id>/run/", view(self.run_view), name="runs_from_template"),
            path("<uuid:template_id>/waiver/", view(self.waiver_view), name="runs_request_waiver"),
            path("<uuid:template_id>/retire/", view(self.retire_view), name="runs_retire_template"),
        ]
        return [*own, *super().get_urls()]

    def acts(self, request: HttpRequest, row: RunTemplate | None) -> list[Act]:
        ctx = context_of(request)
        if row is None:
            new = [Act("Make a template", reverse("admin:runs_new_template"))]
            return new if may(ctx, "CreateRunTemplate") else []
        if row.state != TemplateState.ACTIVE:
            return []
        offered = (
            ("SubmitRun", Act("Start a run", reverse("admin:runs_from_template", args=[row.pk]))),
            ("RequestWaiver", Act("Ask for a waiver", reverse("admin:runs_request_waiver", args=[row.pk]))),
            (
                "RetireRunTemplate",
                Act("Retire it", reverse("admin:runs_retire_template", args=[row.pk]), True),
            ),
        )
        return [act for operation, act in offered if may(ctx, operation)]

    def told_of(self, request: HttpRequest, row: RunTemplate) -> dict[str, Any]:
        waivers = waivers_of_template(row.pk)
        return {
            "title": f"Run template {row.name}",
            "waivers": waivers,
            "ended": names_of("ended-release", [one.release_id for one in waivers]),
            "runs": list(newest_of_template(row.pk)[:20]),
        }

    def new_view(self, request: HttpRequest) -> HttpResponse:
        """Workflow, profile and limits by name; the schema as JSON, if there is to be one."""
        ctx, sent = context_of(request), request.POST
        self._require(request, "CreateRunTemplate")

        def make() -> tuple[str, str]:
            made = create_run_template(ctx, wanted=read_template(_content(sent)))
            return "Made. Runs can be started from it.", reverse("admin:runs_runtemplate_change", args=[made])

        def context() -> dict[str, Any]:
            return {"profiles": current_policy(ctx).document["modelProfiles"]}

        return self._form(request, "runs/template_new.html", "Make a run template", context, make)

    def run_view(self, request: HttpRequest, template_id: UUID) -> HttpResponse:
        """A run from the template, with its input; however often the form is sent, it makes one."""
        ctx, sent = context_of(request), request.POST
        self._require(request, "SubmitRun")
        key = sent.get("key", "") or str(uuid4())

        def make() -> tuple[str, str]:
            payload: dict[str, Any] = {"templateId": str(template_id), "input": _json(sent, "input")}
            payload |= {name: sent[name] for name in ("releaseId", "environmentId") if sent.get(name)}
            body, _ = submit(ctx, payload=payload, key=key)
            return "Accepted.", reverse("admin:runs_run_change", args=[body["runId"]])

        def context() -> dict[str, Any]:
            return self._choices(request, template_id) | {"key": key}

        return self._form(request, "runs/template_run.html", "Start a run", context, make)

    def waiver_view(self, request: HttpRequest, template_id: UUID) -> HttpResponse:
        """Show what is to be approved in advance; it leads to the request that a reviewer decides."""
        ctx, sent = context_of(request), request.POST
        self._require(request, "RequestWaiver")

        def make() -> tuple[str, str]:
            until = as_moment(sent.get("until", ""))
            if until is None:
                raise InvalidInput("Choose an end.", errors=[FieldError("/expiresAt", "A time.")])
            asked = request_waiver(
                ctx,
                template_id=template_id,
                release_id=as_uuid(sent.get("releaseId", "")) or UUID(int=0),
                environment_ids=[found for one in sent.getlist("environment") if (found := as_uuid(one))],
                expires_at=until,
                reason=sent.get("reason", ""),
            )
            where = reverse("admin:approvals_waiver_change", args=[asked["waiverId"]])
            return "Asked. It allows nothing before a reviewer has decided.", where

        def context() -> dict[str, Any]:
            return self._choices(request, template_id) | {"chosen": sent.getlist("environment")}

        return self._form(request, "runs/waiver_new.html", "Ask for a waiver", context, make)

    def retire_view(self, request: HttpRequest, template_id: UUID) -> HttpResponse:
        ctx = context_of(request)
        self._require(request, "RetireRunTemplate")
        with reading(ctx):
            row = self.get_queryset(request).filter(pk=template_id).first()
            held = [one for one in waivers_of_template(template_id) if one.may_be_revoked] if row else []
        if row is None:
            raise Http404
        back = reverse("admin:runs_runtemplate_change", args=[template_id])
        asked = Confirmation(
            title=f"Retire {row.name}",
            lead="No run begins from it any more. It cannot be taken back; its name is free for another.",
            button="Retire it",
            back=back,
            facts=[("Waivers that end with it", len(held))],
            consequences=["Runs that have begun go on with what they pinned."],
        )
        return act_on(
            self.admin_site,
            request,
            lambda: asked,
            lambda reason: retire_run_template(ctx, template_id=template_id, reason=reason),
            done="It is retired.",
            then=back,
        )

    def _choices(self, request: HttpRequest, template_id: UUID) -> dict[str, Any]:
        """Return what a form about a template offers: its releases and the project's environments."""
        try:
            row = template(context_of(request), template_id)
        except DomainError as missing:
            raise Http404 from missing
        found = pinnable(row.workflow_id)
        releases = [
            (
                str(view.id),
                f"{view.asset}@{view.version}" + (f", named by {', '.join(names)}" if names else ""),
            )
            for view, names in found
        ]
        slugs = [(str(place.id), place.slug) for place in environments(row.project_id)]
        return {"row": row, "releases": releases, "environments": slugs, "wanted": _wanted(row, found)}

    def _form(
        self, request: HttpRequest, page: str, title: str, context: Callable[[], dict[str, Any]], make: Made
    ) -> HttpResponse:
        """GET shows it; POST does it once and leads on, or shows it again with what was refused."""
        with reading(context_of(request)):
            shown = context()
        refusal = None
        if request.method == "POST":
            try:
                said, where = make()
            except DomainError as no:
                refusal = no
            else:
                messages.success(request, said)
                return HttpResponseRedirect(where)
        status = refusal.http_status if refusal else 200
        return self._shown(request, page, title, {**shown, "refusal": refusal, "sent": request.POST}, status)

    def _require(self, request: HttpRequest, operation: str) -> None:
        if not may(context_of(request), operation):
            raise PermissionDenied(f"{WHO[operation]}, in a project: choose one above.")

    def _shown(
        self, request: HttpRequest, page: str, title: str, context: dict[str, Any], status: int = 200
    ) -> TemplateResponse:
        common = {**self.admin_site.each_context(request), "title": title, "opts": self.opts}
        return TemplateResponse(request, page, {**common, **context}, status=status)

    @column("template", "name")
    def what(self, row: RunTemplate) -> SafeString:
        return link(reverse("admin:runs_runtemplate_change", args=[row.pk]), seen(row.name))

    follows = Column("workflow", "workflow_id", seen)
    profile = Column("model profile", "model_profile_id", seen)
    limit = Column("limits", lambda row: f"{row.limits['maxCostUsd']} USD, {row.limits['maxMinutes']} min")
    made_by = Column("made by", "created_by", seen)
    made = Column("made", "created_at", when)


def _wanted(row: RunTemplate, found: Sequence[tuple[ReleaseView, tuple[str, ...]]]) -> list[Wanted]:
    """Return what the workflow asks of an input in the release that `latest` names, and what the template
    does."""
    latest = next((view for view, names in found if "latest" in names), found[0][0] if found else None)
    asked = []
    if latest is not None:
        whose = f"The workflow, in {seen(latest.asset)}@{latest.version},"
        asked.append(wanted(whose, workflow(latest.id, row.workflow_id)["inputSchema"]))
    if row.input_schema is not None:
        asked.append(wanted("The template", row.input_schema))
    return asked


def _content(sent: Any) -> dict[str, Any]:
    """The form as the JSON that the API takes: what is left empty is not sent."""
    content: dict[str, Any] = {
        name: sent.get(name, "").strip()
        for name in ("name", "description", "workflowId", "modelProfileId")
        if sent.get(name, "").strip()
    }
    content["limits"] = {
        "maxCostUsd": _number(sent, "maxCostUsd"),
        "maxMinutes": _number(sent, "maxMinutes"),
    }
    if sent.get("inputSchema", "").strip():
        content["inputSchema"] = _json(sent, "inputSchema")
    return content


def _number(sent: Any, name: str) -> float | int | None:
    text = sent.get(name, "").strip()
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        return None


def _json(sent: Any, name: str) -> Any:
    try:
        return loads(sent.get(name, "").encode("utf-8", "surrogatepass"))
    except Malformed as fault:
        errors = [FieldError(f"/{name}", f"Not JSON: {fault}"[:300])]
        raise InvalidInput("A part of the form is no JSON.", errors=errors) from fault
