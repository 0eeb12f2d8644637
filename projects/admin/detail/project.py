"""What the page of a project says: how it stands, who can do what in it, and what works there."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from factory.console.page_extensions import Missing, parts_of
from factory.console.show import seen
from factory.kernel import clock
from factory.kernel.context import Context
from factory.kernel.permissions import may
from projects.admin.detail.effective_grants import Able, loans, memberships, who_can
from projects.models import Project
from projects.selectors import EnvironmentView, environments, may_end, service_accounts
from projects.states import LENDABLE, ProjectState

ACCOUNTS = 50


@dataclass(frozen=True, slots=True)
class Added:
    """A form on which something is added to a project, to whom it is offered, and in words `who` that is."""

    label: str
    who: str
    offered: Callable[[Context, UUID | None], bool]
    view: Callable[[AdminSite, HttpRequest, Project, str], HttpResponse]


def _could_lend(ctx: Context) -> bool:
    return may(ctx, "LendRole") and not ctx.actor.roles.isdisjoint(LENDABLE)


def project_page(ctx: Context, row: Project, forms: Mapping[str, Added]) -> dict[str, Any]:
    """The values of the page for this reader, in the open transaction."""
    at = clock.now()
    figures, cards, missing = parts_of("project", ctx, row.pk, at)
    sees_members = may(ctx, "ListMembers")
    members, more = memberships(row) if sees_members else ([], False)
    named = {one.subject: one.name for one in members}
    lent = loans(row, named, at) if may(ctx, "ListDelegations") else []
    can = who_can(members, lent) if sees_members else []
    places = environments(row.pk)
    offered = {name: form.label for name, form in forms.items() if form.offered(ctx, row.pk)}
    accounts = list(service_accounts(row.pk)[: ACCOUNTS + 1]) if may(ctx, "ListServiceAccounts") else []
    return {
        "project": row,
        "sentence": sentence(row, stopped=any(each.stops for each in missing)),
        "figures": figures,
        "cards": cards,
        "missing": [*_missing(row, can, places, offered), *missing],
        "sees_members": sees_members,
        "members": members,
        "more_members": more,
        "can": can,
        "lent": [(each, may_end(ctx, each.row)) for each in lent],
        "may_lend": ctx.project_id == row.pk and _could_lend(ctx),
        "environments": places,
        "sees_accounts": may(ctx, "ListServiceAccounts"),
        "accounts": accounts[:ACCOUNTS],
        "more_accounts": len(accounts) > ACCOUNTS,
        "may_act": may(ctx, "SuspendProject"),
        "offered": offered,
    }


def _missing(
    row: Project, can: Iterable[Able], places: Sequence[EnvironmentView], offered: Mapping[str, str]
) -> Iterator[Missing]:
    """Return what the project itself lacks before runs get anywhere in it."""
    told = _too_few([each for each in can if each.ability.needed])
    if told:
        yield Missing(told, *_way("projects_add_member", row, offered))
    if not places:
        told = "There is no environment, and a run targets one."
        yield Missing(told, *_way("projects_add_environment", row, offered))


def _way(name: str, row: Project, offered: Mapping[str, str]) -> Sequence[str]:
    """The form that helps, for who may use it."""
    return (offered[name], reverse(f"admin:{name}", args=[row.pk])) if name in offered else ()


def _too_few(needed: Sequence[Able]) -> str:
    """Tell whether nobody is there for something, or one person for all of it: nobody decides on their
    own."""
    nobody = [each.ability.words for each in needed if not each.people]
    if nobody:
        return f"Nobody can do this here yet: {'; '.join(one[:1].lower() + one[1:] for one in nobody)}."
    if needed and len(frozenset[str]().union(*(each.subjects for each in needed))) == 1:
        alone = needed[0].people[0]
        return f"{alone} is the only one here, and nobody decides on what they asked for themselves."
    return ""


def sentence(row: Project, *, stopped: bool = False) -> str:
    """Return how it stands, and what that means; `stopped` where something is missing that all runs need."""
    if row.state == ProjectState.ACTIVE and stopped:
        return "It is active, and no run can start in it as things stand: what is missing is said below."
    if row.state == ProjectState.ACTIVE:
        return "It accepts runs, and what they need is dispatched to workers."
    if row.killing_since is not None:
        return "Its kill switch is thrown: nothing new starts, and its open runs are being cancelled."
    if row.killed_by:
        return (
            f"{seen(row.killed_by)} threw its kill switch, and every run that was open was asked to stop. "
            "Nothing new starts until somebody resumes it."
        )
    return "It is suspended: it accepts no runs and nothing new is dispatched, until somebody resumes it."
