"""Onboarding a project as one form: what it is called, where runs may go, and who begins in it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse

from factory.admin.confirming import Choice, Question, ask
from factory.admin.scope import context_of, go_to
from factory.admin.show import seen
from factory.errors import DomainError
from projects.admin.joining import member_of
from projects.admin.words import grant_options, role_options
from projects.commands import onboard_project
from projects.inputs import NewEnvironment, NewMember
from projects.states import LENDABLE

ROWS = 2
"""So many empty rows stand below those that are written."""
MOST = 50
"""More rows are not read: who has that many members to begin with, onboards over the API."""
MORE = "more"
WHAT = (
    Choice("name", "Name", help="What people call it, in lists, titles and mails."),
    Choice(
        "slug",
        "Key",
        help="Its name for programs and the terminal: small letters, digits and inner hyphens, such as "
        "repository-assessments. It cannot be changed later.",
    ),
)


@dataclass(frozen=True, slots=True)
class Draft:
    """What was written, without the rows that are empty: where these were, others have moved up."""

    name: str
    slug: str
    environments: tuple[NewEnvironment, ...]
    members: tuple[NewMember, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the form: the beginning of its fields' names, and what is written in it."""

    at: str
    number: int
    written: Any = None


def draft_of(sent: QueryDict) -> Draft:
    return Draft(
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


def onboard_view(site: AdminSite, request: HttpRequest, tenant: str) -> HttpResponse:
    """GET asks; POST makes all of it or nothing, and leads to the new project."""
    ctx, draft = context_of(request), draft_of(request.POST)
    if request.method != "POST" or MORE in request.POST:
        return ask(site, request, _question(draft, tenant, more=request.POST.get(MORE, "")))
    try:
        made = onboard_project(
            ctx, slug=draft.slug, name=draft.name, environments=draft.environments, members=draft.members
        )
    except DomainError as refusal:
        return ask(site, request, _question(draft, tenant), refusal)
    go_to(request, ctx.tenant_id, made["projectId"])
    messages.success(request, _told(draft))
    return HttpResponseRedirect(reverse("admin:projects_project_change", args=[made["projectId"]]))


def _told(draft: Draft) -> str:
    """What there is now, and what comes next."""
    environments, members = len(draft.environments), len(draft.members)
    what = f"{environments} environment{'' if environments == 1 else 's'}"
    who = f"{members} member{'' if members == 1 else 's'} of its own"
    return (
        f"{seen(draft.name)} is there, with {what} and {who}, and chosen in the header from now on. What it "
        "still needs before a run can start stands below."
    )


def _question(draft: Draft, tenant: str, more: str = "") -> Question:
    environments = _rows("environments", draft.environments, more)
    members = _rows("members", draft.members, more)
    return Question(
        title=f"Onboard a project of {tenant}",
        lead="A project is where people ask for runs and decide on them. All of this is made at once, or "
        "nothing; environments and members can also be added later, and the tenant's own members, its policy "
        "and its releases are there from the first moment.",
        button="Onboard the project",
        back=reverse("admin:projects_project_changelist"),
        fields=(*WHAT, *_fields(environments, members)),
        reason="",
        danger=False,
        heading="Projects",
        template="projects/onboard.html",
        more={
            "draft": draft,
            "environments": environments,
            "members": members,
            "full": {"environments": len(environments) >= MOST, "members": len(members) >= MOST},
            "roles": role_options(LENDABLE),
            "grants": grant_options(),
        },
    )


def _rows(what: str, written: tuple[Any, ...], more: str) -> list[Row]:
    """What is written, and below it empty rows: twice as many where somebody asked for more."""
    many = min(MOST, len(written) + ROWS * (2 if more == what else 1))
    filled = [*written, *[None] * (many - len(written))]
    return [Row(f"{what}/{at}", at + 1, one) for at, one in enumerate(filled)]


def _fields(environments: list[Row], members: list[Row]) -> Iterator[Choice]:
    """The fields of the rows by the pointers of the command, so that each fault finds its own."""
    for row in environments:
        yield Choice(f"{row.at}/slug", f"Key of environment {row.number}")
        yield Choice(f"{row.at}/name", f"Name of environment {row.number}")
    for row in members:
        yield Choice(f"{row.at}/subject", f"Member {row.number}")
        yield Choice(f"{row.at}/displayName", f"Name of member {row.number}")
        yield Choice(f"{row.at}/roles", f"Roles of member {row.number}")
        yield Choice(f"{row.at}/grants", f"Grants of member {row.number}")
