"""Onboarding a project as one form: what it is called, where runs may go, and who begins in it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import UUID

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.defaultfilters import pluralize
from django.urls import reverse

from factory.console.confirming import ChoiceField, Confirmation, ask
from factory.console.scope import context_of, go_to
from factory.console.show import seen
from factory.kernel.context import Context
from factory.kernel.errors import DomainError, InvalidInput
from factory.kernel.tenancy import reading
from projects.admin.actions.add import ADDED
from projects.admin.actions.membership import member_of
from projects.admin.detail.labels import grant_options, role_options
from projects.admin.detail.project import project_page
from projects.commands import onboard_project
from projects.commands.inputs import NewEnvironment, NewMember
from projects.models import Project
from projects.states import LENDABLE

ROWS = 2
"""So many empty rows stand below those that are written."""
MOST = 50
"""More rows are refused: who has that many members to begin with, onboards over the API."""
READ = frozenset(map(str, range(MOST)))
MORE = "more"
ROW = re.compile(r"(?:environments|members)/([0-9]+)/.*", re.ASCII)
FIELDS = ("subject", "displayName", "roles", "grants")
T = TypeVar("T")
WHAT = (
    ChoiceField("name", "Name", help="What people call it, in lists, titles and mails."),
    ChoiceField(
        "slug",
        "Short name (slug)",
        help="Its name for programs and the terminal: lower-case letters, digits and inner hyphens, such as "
        "repository-assessments. It cannot be changed later.",
    ),
)


@dataclass(frozen=True, slots=True)
class OnboardingDraft:
    """Hold what was written, without the rows that are empty: where these were, others have moved up."""

    name: str
    slug: str
    environments: tuple[NewEnvironment, ...]
    members: tuple[NewMember, ...]


@dataclass(frozen=True, slots=True)
class EnvironmentRow:
    """A row for an environment: what is written in it, and its fields by the pointers of the command."""

    number: int
    slug: str
    name: str
    written: NewEnvironment | None

    @property
    def fields(self) -> tuple[ChoiceField, ...]:
        whose = f"environment {self.number}"
        return ChoiceField(self.slug, f"Short name of {whose}"), ChoiceField(self.name, f"Name of {whose}")


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A row for a member, likewise."""

    number: int
    subject: str
    display_name: str
    roles: str
    grants: str
    written: NewMember | None

    @property
    def whose(self) -> str:
        return f"member {self.number}"

    @property
    def fields(self) -> tuple[ChoiceField, ...]:
        named = ((self.subject, "Who is"), (self.display_name, "Name of"), (self.roles, "Roles of"),
                 (self.grants, "Grants of"))  # fmt: skip
        return tuple(ChoiceField(name, f"{words} {self.whose}") for name, words in named)


def draft_of(sent: QueryDict) -> OnboardingDraft:
    return OnboardingDraft(
        sent.get("name", "").strip(),
        sent.get("slug", "").strip(),
        tuple(one for one in _environments(sent) if one != NewEnvironment("")),
        tuple(one for one in _members(sent) if one != NewMember("", ())),
    )


def _environments(sent: QueryDict) -> Iterator[NewEnvironment]:
    for at in range(MOST):
        slug, name = (sent.get(f"environments/{at}/{what}", "").strip() for what in ("slug", "name"))
        yield NewEnvironment(slug, name)


def _members(sent: QueryDict) -> Iterator[NewMember]:
    return (member_of(sent, f"members/{at}/") for at in range(MOST))


def _refuse_more(sent: QueryDict) -> None:
    """Raises `InvalidInput` where something is written in a row that is not read."""
    rows = (ROW.fullmatch(name) for name, values in sent.lists() if any(value.strip() for value in values))
    if any(row[1] not in READ for row in rows if row):
        raise InvalidInput(
            f"More than {MOST} rows of a kind were sent, and this page reads no more. Nothing was made. "
            "Add the others on the page of the project, or onboard it over the API."
        )


def onboard_view(site: AdminSite, request: HttpRequest, tenant: str) -> HttpResponse:
    """GET asks; POST makes all of it or nothing, and leads to the new project."""
    ctx, draft = context_of(request), draft_of(request.POST)
    if request.method != "POST" or MORE in request.POST:
        return ask(site, request, _question(draft, tenant, more=request.POST.get(MORE, "")))
    try:
        _refuse_more(request.POST)
        made = onboard_project(
            ctx, slug=draft.slug, name=draft.name, environments=draft.environments, members=draft.members
        )
    except DomainError as refusal:
        return ask(site, request, _question(draft, tenant), refusal)
    go_to(request, ctx.tenant_id, made["projectId"])
    messages.success(request, _told(ctx, draft, UUID(made["projectId"])))
    return HttpResponseRedirect(reverse("admin:projects_project_change", args=[made["projectId"]]))


def _told(ctx: Context, draft: OnboardingDraft, project_id: UUID) -> str:
    """Return what there is now, and what comes next."""
    there = replace(ctx, project_id=project_id)
    with reading(there):
        missing = len(project_page(there, Project.objects.get(pk=project_id), ADDED)["missing"])
    environments, members = len(draft.environments), len(draft.members)
    what = f"{environments} environment{pluralize(environments)}"
    who = f"{members} member{pluralize(members)} of its own"
    lacks = f"{missing} thing{pluralize(missing, ' is,s are')} missing before a run can start: see below."
    then = lacks if missing else "Nothing is missing: who may ask for runs can start one."
    return f"{seen(draft.name)} is there, with {what} and {who}; it is the chosen project now. {then}"


def _question(draft: OnboardingDraft, tenant: str, more: str = "") -> Confirmation:
    places = [
        EnvironmentRow(at + 1, f"environments/{at}/slug", f"environments/{at}/name", one)
        for at, one in enumerate(_rows(draft.environments, more == "environments"))
    ]
    people = [_person(at, one) for at, one in enumerate(_rows(draft.members, more == "members"))]
    return Confirmation(
        title=f"Onboard a project of {tenant}",
        lead="A project is where people ask for runs and decide on them. All of this is made at once, or "
        "nothing; environments and members can also be added later, and the tenant's own members, its policy "
        "and its releases are there from the first moment.",
        button="Onboard the project",
        back=reverse("admin:projects_project_changelist"),
        fields=(
            *WHAT,
            *(field for place in places for field in place.fields),
            *(field for person in people for field in person.fields),
        ),
        reason="",
        danger=False,
        heading="Projects",
        template="projects/onboard.html",
        more={
            "draft": draft,
            "environments": places,
            "members": people,
            "full": {"environments": len(places) >= MOST, "members": len(people) >= MOST},
            "roles": role_options(LENDABLE, wide=False),
            "grants": grant_options(wide=False),
        },
    )


def _person(at: int, written: NewMember | None) -> MemberRow:
    subject, name, roles, grants = (f"members/{at}/{what}" for what in FIELDS)
    return MemberRow(at + 1, subject, name, roles, grants, written)


def _rows(written: tuple[T, ...], more: bool) -> list[T | None]:
    """Return what is written, and below it empty rows: twice as many where somebody asked for more."""
    return [*written, *[None] * (ROWS * (2 if more else 1))][:MOST]
