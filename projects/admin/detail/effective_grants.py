"""Who is what in a project, and who can therefore do what: by their own membership, or by a role lent."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from factory.console.page_extensions import Ability, abilities
from factory.console.show import seen
from projects.models import Delegation, Membership, Project
from projects.selectors import active_memberships, delegations_in_force, in_each_project
from projects.states import DelegationState, SubjectKind

MOST = 200
NAMED = 8
LOANS = 50


@dataclass(frozen=True, slots=True)
class MemberLine:
    """A membership in words: who, what they are, and through what."""

    key: UUID
    name: str
    subject: str
    machine: bool
    wide: bool
    roles: Sequence[str]
    grants: Sequence[str]
    through: str
    since: datetime
    each: frozenset[str]
    """The roles of it that they hold in every project of the tenant, where something asks for that."""


@dataclass(frozen=True, slots=True)
class DelegationLine:
    """A role that is lent: `counts` says whether it gives anything at this moment."""

    row: Delegation
    lender: str
    borrower: str
    seconds: int
    counts: bool


@dataclass(frozen=True, slots=True)
class Able:
    """Hold what can be done, by whom; of many people only the first are named."""

    ability: Ability
    people: Sequence[str]
    others: int
    subjects: frozenset[str]


def memberships(project: Project) -> tuple[list[MemberLine], bool]:
    """The active memberships that reach a project, its own first, and whether there are more than these."""
    rows = active_memberships(project.pk).order_by("project_id", "display_name", "subject", "id")
    judged = frozenset[str]().union(*(ability.roles for ability in abilities() if ability.everywhere))
    found = list(rows.annotate(**{_asked(role): in_each_project(role) for role in judged})[: MOST + 1])
    return [_member(row, judged) for row in found[:MOST]], len(found) > MOST


def _asked(role: str) -> str:
    return f"each_{role}"


def _member(row: Membership, judged: Iterable[str]) -> MemberLine:
    machine = row.kind == SubjectKind.SERVICE
    through = "this project" if row.project_id else "the whole tenant"
    return MemberLine(
        key=row.pk,
        name=seen(row.display_name or row.subject),
        subject=seen(row.subject),
        machine=machine,
        wide=row.project_id is None,
        roles=tuple(row.roles),
        grants=tuple(row.grants),
        through=f"{through}; {seen(row.person)} answers for it" if machine else through,
        since=row.created_at,
        each=frozenset(role for role in judged if getattr(row, _asked(role))),
    )


def loans(project: Project, named: dict[str, str], at: datetime) -> list[DelegationLine]:
    """The roles that are lent in it now, the one that ends first before the others."""
    rows = Delegation.objects.filter(project=project, state=DelegationState.ACTIVE, expires_at__gt=at)
    in_force = {view.id for view in delegations_in_force(project.pk)}
    return [
        DelegationLine(
            row,
            named.get(row.delegator, seen(row.delegator)),
            named.get(row.delegate, seen(row.delegate)),
            round((row.expires_at - at).total_seconds()),
            row.id in in_force,
        )
        for row in rows.order_by("expires_at", "id")[:LOANS]
    ]


@dataclass(frozen=True, slots=True)
class Hold:
    """Hold what somebody holds, and how."""

    subject: str
    name: str
    roles: frozenset[str]
    grants: frozenset[str]
    how: str
    wide: bool = False
    each: frozenset[str] = frozenset()
    lent: bool = False


def who_can(members: Iterable[MemberLine], lent: Iterable[DelegationLine]) -> list[Able]:
    """For each ability the people who have it, and through what."""
    held = [_own(one) for one in members]
    held += [_borrowed(each) for each in lent if each.counts]
    return [_able(ability, _opening(ability, held)) for ability in abilities()]


def _own(one: MemberLine) -> Hold:
    roles, grants, how = frozenset(one.roles), frozenset(one.grants), "tenant-wide" if one.wide else ""
    return Hold(one.subject, one.name, roles, grants, how, one.wide, one.each)


def _borrowed(loan: DelegationLine) -> Hold:
    role, subject = frozenset({loan.row.role}), seen(loan.row.delegate)
    return Hold(subject, loan.borrower, role, frozenset(), f"lent by {loan.lender}", lent=True)


def _opening(ability: Ability, held: Sequence[Hold]) -> list[Hold]:
    """Of what is held here, that by which the commands behind the ability would judge."""
    counted = [
        one for one in held if not ((ability.own and one.lent) or (ability.only_widely and not one.wide))
    ]
    return [one if one.wide else _in_each(one) for one in counted] if ability.everywhere else counted


def _in_each(one: Hold) -> Hold:
    """Return what is left of it where a role counts only that is held in each project."""
    return replace(one, roles=one.roles & one.each, grants=frozenset(), how="in each project")


def _able(ability: Ability, held: Sequence[Hold]) -> Able:
    ways: dict[str, list[str]] = defaultdict(list)
    names = {one.subject: one.name for one in held}
    for one in held:
        grants = [f"grant {grant}" for grant in sorted(one.grants & ability.grants)]
        by = sorted(one.roles & ability.roles) or grants
        if by:
            ways[one.subject].append(", ".join([*by, *([one.how] if one.how else [])]))
    people = [f"{names[subject]} ({'; '.join(found)})" for subject, found in ways.items()]
    return Able(ability, people[:NAMED], max(0, len(people) - NAMED), frozenset(ways))
