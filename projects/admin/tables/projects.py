"""Pages of projects and of who is what in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse

from factory.console.base import BaseAdmin, OwnPageAdmin
from factory.console.confirming import Act, Confirmation, act_on
from factory.console.links import names
from factory.console.lists.columns import Column
from factory.console.page_extensions import able
from factory.console.scope import context_of
from factory.console.show import seen, when
from factory.console.site import site
from factory.kernel.commanding import Command
from factory.kernel.impact import concerns
from factory.kernel.permissions import may
from factory.kernel.tenancy import reading
from projects.admin.actions.add import ADDED, way_to
from projects.admin.actions.onboard import onboard_view
from projects.admin.detail.project import project_page
from projects.commands import kill_project, resume_project, suspend_project
from projects.commands.reach import may_onboard
from projects.models import Environment, Project
from projects.selectors import tenant
from projects.states import Grant, ProjectState, Role

EVIDENCE = (Role.WORKSPACE_ADMIN, Role.PLATFORM_ADMIN, Role.OPERATOR)


able(60, "Add and change members", by="AddMember", own=True, note="Never by a lent role.")
able(62, "Add environments, suspend the project, throw its kill switch", by="SuspendProject")
able(
    70, "Read the journal, the audit log and the findings of this project",
    widely="Read the whole journal, the audit log and all findings", roles=EVIDENCE, grants=(Grant.AUDIT,),
    note="Those of one run stand on its page, for whoever may read it.",
)  # fmt: skip
able(80, "Read what goes into runs and comes out of them", grants=(Grant.PAYLOADS,))


NEW = {
    "members": "projects_add_member",
    "environments": "projects_add_environment",
    "accounts": "projects_register_account",
}
"""What is added to a project: the end of the form's address, and its name."""


class Stated(BaseAdmin[Any]):
    short_name = Column("short name", "slug", in_files="slug")
    since = Column("since", "created_at", when)


@admin.register(Project, site=site)
class ProjectAdmin(Stated, OwnPageAdmin[Any]):
    lead = "Where work is submitted. A suspended project accepts no runs and dispatches nothing new."

    view_operation = "ListProjects"
    own_page = "projects/project.html"
    nothing_yet = "A project is onboarded in one act, by an administrator of the whole tenant."
    list_display = ("name", "short_name", "status", "since", "suspended_because")
    list_filter = ("state",)
    search_fields = ("name", "slug")
    search_help_text = "Words of a name"

    suspended_because = Column("suspended because", "suspension_reason", seen)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        project_id = context_of(request).project_id
        return rows if project_id is None else rows.filter(pk=project_id)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path(
                f"<uuid:project_id>/{word}/",
                view(partial(self.act_view, word=word)),
                name=f"projects_{word}",
            )
            for word in ACTS
        ]
        new = [
            path("new/", view(self.onboard_view), name="projects_onboard"),
            *(
                path(f"<uuid:project_id>/{way}/new/", view(partial(self.new_view, name=name)), name=name)
                for way, name in NEW.items()
            ),
        ]
        return [*own, *new, *super().get_urls()]

    def told_of(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        return {"title": seen(row.name), **project_page(context_of(request), row, ADDED)}

    def acts(self, request: HttpRequest, row: Any) -> list[Act]:
        ctx = context_of(request)
        if row is None:
            return [Act("Onboard a project", reverse("admin:projects_onboard"))] if may_onboard(ctx) else []
        if not may(ctx, "SuspendProject"):
            return []
        words = ["kill"] if row.killing_since is None else []
        words = [*(["suspend"] if row.state == ProjectState.ACTIVE else ["resume"]), *words]
        return [
            Act(ACTS[word].label, reverse(f"admin:projects_{word}", args=[row.pk]), danger=word != "resume")
            for word in words
        ]

    def onboard_view(self, request: HttpRequest) -> HttpResponse:
        ctx = context_of(request)
        with reading(ctx):
            if not may_onboard(ctx):
                raise PermissionDenied("An administrator of the whole tenant onboards projects.")
            home = tenant(ctx.tenant_id)
        return onboard_view(self.admin_site, request, seen(home.name if home else ctx.tenant_id))

    def new_view(self, request: HttpRequest, project_id: UUID, name: str) -> HttpResponse:
        """A member, an environment or a service account of one project, for who administers it."""
        ctx = context_of(request)
        with reading(ctx):
            row = self.get_queryset(request).filter(pk=project_id).first()
            if row is None:
                raise Http404
            if not ADDED[name].offered(ctx, project_id):
                raise PermissionDenied(ADDED[name].who)
        back = reverse("admin:projects_project_change", args=[project_id])
        return ADDED[name].view(self.admin_site, request, row, back)

    def act_view(self, request: HttpRequest, project_id: UUID, word: str) -> HttpResponse:
        ctx, command = context_of(request), ACTS[word].command
        if not may(ctx, command.name):
            raise PermissionDenied("An administrator of the project does this.")
        with reading(ctx):
            row = self.get_queryset(request).filter(pk=project_id).first()
            found = concerns("project", project_id)
        if row is None:
            raise Http404
        back = reverse("admin:projects_project_change", args=[project_id])
        return act_on(
            self.admin_site,
            request,
            lambda: question(ACTS[word], row, found, back),
            lambda reason: command(ctx, project_id=project_id, reason=reason),
            done=ACTS[word].done,
            then=back,
        )


@names("project")
def project_names(keys: Sequence[UUID]) -> dict[UUID, str]:
    """Return how projects of the tenant are called."""
    return dict(Project.objects.filter(pk__in=keys).values_list("pk", "name"))


@dataclass(frozen=True, slots=True)
class ProjectAct:
    """An act on a project's state, and what the page before it says."""

    label: str
    command: Command[Any, Any]
    lead: str
    consequences: tuple[str, ...]
    done: str


ACTS = {
    "suspend": ProjectAct(
        "Suspend",
        suspend_project,
        "No runs are accepted and nothing new is dispatched, until somebody resumes it.",
        (
            "Attempts that a worker holds may finish; decisions and cancellation stay possible.",
            "Approvals that are not used yet, and reservations, lose no time meanwhile.",
        ),
        "The project is suspended.",
    ),
    "resume": ProjectAct(
        "Resume",
        resume_project,
        "Runs are accepted and dispatched again.",
        ("Approvals and reservations go on with the time that they had left.",),
        "The project takes work again.",
    ),
    "kill": ProjectAct(
        "Throw the kill switch",
        kill_project,
        "The project is suspended, and every open run of it is cancelled. In one act, with one reason.",
        (
            "Pending questions are withdrawn, and offers taken back.",
            "Who holds an attempt is told to stop at the next renewal, and may report once; who does not "
            "answer in time may leave an attempt that an Operator has to settle.",
            "What has happened already is not undone, and stays visible.",
            "The project can be resumed when every run was asked to stop.",
        ),
        "The kill switch is thrown: nothing new starts, and the open runs are being cancelled.",
    ),
}


def question(act: ProjectAct, row: Project, found: dict[str, int], back: str) -> Confirmation:
    """The page before an act on a project, with what it will reach."""
    facts = [
        ("Project", row.name),
        ("State", row.state),
        ("Open runs that are not being stopped already", found.get("openRuns", 0)),
        ("Attempts held by a worker", found.get("heldAttempts", 0)),
    ]
    return Confirmation(
        title=f"{act.label}: {row.name}",
        lead=act.lead,
        button=act.label,
        back=back,
        facts=facts,
        consequences=act.consequences,
        danger=act.label != "Resume",
    )


@admin.register(Environment, site=site)
class EnvironmentAdmin(Stated):
    lead = "What runs may target; the policy speaks of environments by these names."

    view_operation = "ListEnvironments"
    list_display = ("short_name", "name", "project")
    list_select_related = ("project",)
    nothing_yet = "Environments are made when a project is onboarded, and later by who administers it."
    search_fields = ("slug", "name")
    search_help_text = "Words of a name"

    def acts(self, request: HttpRequest, row: Environment | None) -> list[Act]:
        return way_to("projects_add_environment", context_of(request)) if row is None else []
