"""What ends with a membership, or with some of its roles: said on the page before it happens."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet

from factory.console.show import seen
from factory.kernel import clock
from factory.kernel.context import Context
from projects.admin.detail.effective_grants import loans, memberships, who_can
from projects.models import Delegation, Membership, ServiceAccount
from projects.selectors import delegations_of, service_accounts
from projects.states import MembershipState, ServiceAccountState, SubjectKind

MOST = 20
"""More of a kind are counted and not named."""
LOANS = 50
T = TypeVar("T", bound=Model)
YOURSELF = "This is you: the next page may be closed to you, and another administrator has to undo it."


@dataclass(frozen=True, slots=True)
class RemainingRoles:
    """Hold what a subject would hold in the tenant if a membership had only some of its roles, or were
    over."""

    others: Sequence[Membership]
    row: Membership
    roles: frozenset[str]

    def reaches(self, project_id: UUID | None) -> bool:
        own = bool(self.roles) and self.row.project_id in (None, project_id)
        return own or any(one.project_id in (None, project_id) for one in self.others)

    def holds(self, role: str, project_id: UUID | None) -> bool:
        own = role in self.roles and self.row.project_id in (None, project_id)
        return own or any(role in one.roles and one.project_id in (None, project_id) for one in self.others)


def after(row: Membership, roles: Collection[str] = ()) -> RemainingRoles:
    """As it would be: without roles, the membership is over."""
    active = Membership.objects.filter(subject=row.subject, state=MembershipState.ACTIVE)
    others = list(active.exclude(pk=row.pk).select_related("project").order_by("project_id", "id"))
    return RemainingRoles(others, row, frozenset(roles))


def ends_with(ctx: Context, row: Membership) -> list[str]:
    """Return what removing a member does, in sentences, as things stand, as far as the reader's place shows
    it."""
    then = after(row)
    lost, unread = loans_lost(ctx, then)
    yours = [YOURSELF] if row.subject == ctx.actor.subject else []
    told = [*yours, _own(ctx, then), *_accounts(ctx, then), *(_loan(one) for one in lost), *unread]
    nobody = _nobody_left(row, lost)
    if nobody:
        told.append(f"Then nobody here can: {'; '.join(nobody)}.")
    return [
        *told,
        "What was asked for and decided stays, with the name on it. Runs that they asked for go on; a yes "
        "of theirs to a request that is still open counts no more.",
        "They can be made a member again at any time; that begins a new membership.",
    ]


def _own(ctx: Context, then: RemainingRoles) -> str:
    who, others = seen(then.row), [one for one in then.others if is_shown(ctx, one.project_id)]
    if others:
        left = listed([f"{', '.join(one.roles)} in {place_of(one)}" for one in others], "; ")
        return f"What this membership gives ends with the next request. {who} stays: {left}."
    if ctx.project_id is None:
        return f"{who} opens nothing in this tenant any more, from the next request on."
    return f"{who} opens nothing in this project any more, from the next request on; elsewhere nothing ends."


def is_shown(ctx: Context, project_id: UUID | None) -> bool:
    """Tell whether the reader's place shows what stands in a project: nobody learns of others from this
    page."""
    return ctx.project_id is None or project_id in (None, ctx.project_id)


def shown(ctx: Context) -> Q:
    """Return the same, as a question about rows with a project."""
    return Q() if ctx.project_id is None else Q(project=None) | Q(project=ctx.project_id)


def first(rows: QuerySet[T], most: int = MOST) -> tuple[list[T], int]:
    """The first of some rows, and how many more there are."""
    found = list(rows[: most + 1])
    return found[:most], rows.count() - most if len(found) > most else 0


def listed(words: Sequence[str], between: str = ", ") -> str:
    """The first of some words, and how many more there are."""
    more = [f"and {len(words) - MOST} more"] if len(words) > MOST else []
    return between.join([*words[:MOST], *more])


def place_of(row: Membership) -> str:
    """Return where a membership holds."""
    return seen(row.project.name) if row.project else "the whole tenant"


def accounts_of(ctx: Context, row: Membership) -> QuerySet[ServiceAccount]:
    """The machines of the reader's place that a person answers for."""
    rows = service_accounts(ctx.project_id).filter(owner=row.person, state=ServiceAccountState.ACTIVE)
    return rows.order_by("slug") if row.kind == SubjectKind.PERSON else rows.none()


def _accounts(ctx: Context, then: RemainingRoles) -> Iterator[str]:
    if then.row.kind != SubjectKind.PERSON:
        yield "The account itself stays, without this membership. To end it everywhere, revoke it."
        return
    accounts, more = first(accounts_of(ctx, then.row))
    told = list(_ends_of(ctx, then, accounts))
    yield from told
    if more and (told or ctx.project_id is None):
        yield f"The same holds for {more} more service accounts of theirs, each where it is a member."


def _ends_of(ctx: Context, then: RemainingRoles, accounts: Sequence[ServiceAccount]) -> Iterator[str]:
    """Return what becomes of each machine. Of a project nobody learns whether its owner is a member of
    others."""
    if ctx.project_id is None and not any(one.kind == SubjectKind.PERSON for one in then.others):
        for account in accounts:
            yield f"The service account {seen(account.name)} is revoked for good: nobody else answers for it."
        return
    places = _places_lost(ctx, then, accounts)
    for account in accounts:
        machine = f"The service account {seen(account.name)}, their machine,"
        left = f" leaves {listed(places[account.subject])}" if account.subject in places else ""
        if ctx.project_id is None:
            yield from [f"{machine}{left}."] if left else []
        elif not then.reaches(ctx.project_id):
            and_then = "; it" if left else ""
            yield f"{machine}{left}{and_then} is revoked for good if they are a member nowhere else."


def _places_lost(
    ctx: Context, then: RemainingRoles, accounts: Sequence[ServiceAccount]
) -> dict[str, list[str]]:
    """By the subject of each machine the places where nobody would answer for it, in one question."""
    rows = Membership.objects.filter(shown(ctx), state=MembershipState.ACTIVE)
    rows = rows.filter(subject__in=[one.subject for one in accounts]).select_related("project")
    if then.row.project_id is not None:  # a membership of one project lets nothing go in others
        rows = rows.filter(project=then.row.project_id)
    found: dict[str, list[str]] = {}
    for one in rows.order_by("subject", "project_id", "id"):
        if not then.reaches(one.project_id):
            found.setdefault(one.subject, []).append(place_of(one))
    return found


def loans_lost(ctx: Context, then: RemainingRoles) -> tuple[list[Delegation], list[str]]:
    """Roles that are lent by or to the subject, and for which there would be no ground any more; and a
    sentence where so many are lent that not all were looked at."""
    rows, more = first(delegations_of(then.row.subject).filter(shown(ctx)), LOANS)
    told = f"Of the {LOANS + more} roles that they lend or are lent, others may end too."
    return [one for one in rows if not _has_ground(then, one)], [told] if more else []


def _has_ground(then: RemainingRoles, loan: Delegation) -> bool:
    if loan.delegator == then.row.subject:
        return then.holds(loan.role, loan.project_id)
    return then.reaches(loan.project_id)


def _loan(row: Delegation) -> str:
    who, whom = seen(row.delegator), seen(row.delegate)
    return (
        f"The role {row.role} that {who} lent to {whom} until {row.expires_at:%d %b %Y %H:%M} UTC ends too."
    )


def _nobody_left(row: Membership, lost: Collection[Delegation]) -> list[str]:
    """Return what nobody could do in the project any more; nothing is said of the whole tenant, or of a
    crowd."""
    project, ended = row.project, {one.pk for one in lost}
    if project is None:
        return []
    members, crowd = memberships(project)
    lent = loans(project, {}, clock.now())
    now = who_can(members, lent)
    left = who_can(
        [one for one in members if one.key != row.pk], [one for one in lent if one.row.pk not in ended]
    )
    gone = [a.ability.words for a, b in zip(now, left, strict=True) if a.people and not b.people]
    return [] if crowd else [words[:1].lower() + words[1:] for words in gone]
