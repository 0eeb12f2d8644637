"""What ends with a membership, or with some of its roles: said on the page before it happens."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from factory import clock
from factory.admin.show import seen
from factory.context import Context
from projects.admin.standing import loans, memberships, who_can
from projects.models import Delegation, Membership, ServiceAccount
from projects.selectors import delegations_of, service_accounts
from projects.states import MembershipState, ServiceAccountState, SubjectKind

YOURSELF = "This is you: the next page may be closed to you, and another administrator has to undo it."


@dataclass(frozen=True, slots=True)
class Held:
    """What a subject would hold in the tenant if a membership had only some of its roles, or were over."""

    others: Sequence[Membership]
    row: Membership
    roles: frozenset[str]

    def reaches(self, project_id: UUID | None) -> bool:
        own = bool(self.roles) and self.row.project_id in (None, project_id)
        return own or any(one.project_id in (None, project_id) for one in self.others)

    def holds(self, role: str, project_id: UUID | None) -> bool:
        own = role in self.roles and self.row.project_id in (None, project_id)
        return own or any(role in one.roles and one.project_id in (None, project_id) for one in self.others)


def after(row: Membership, roles: Collection[str] = ()) -> Held:
    """As it would be: without roles, the membership is over."""
    active = Membership.objects.filter(subject=row.subject, state=MembershipState.ACTIVE)
    others = list(active.exclude(pk=row.pk).select_related("project").order_by("project_id", "id"))
    return Held(others, row, frozenset(roles))


def ends_with(ctx: Context, row: Membership) -> list[str]:
    """What removing a member does, in sentences, as things stand, as far as the reader's place shows it."""
    then = after(row)
    lost = loans_lost(ctx, then)
    yours = [YOURSELF] if row.subject == ctx.actor.subject else []
    told = [*yours, _own(ctx, then), *_accounts(ctx, then), *(_loan(one) for one in lost)]
    nobody = _nobody_left(row, lost)
    if nobody:
        told.append(f"Then nobody here can: {'; '.join(nobody)}.")
    return [
        *told,
        "What was asked for and decided stays, with the name on it. Runs that they asked for go on; a yes "
        "of theirs to a request that is still open counts no more.",
        "They can be made a member again at any time; that begins a new membership.",
    ]


def _own(ctx: Context, then: Held) -> str:
    who, others = seen(then.row), [one for one in then.others if is_shown(ctx, one.project_id)]
    if others:
        left = "; ".join(f"{', '.join(one.roles)} in {place_of(one)}" for one in others)
        return f"What this membership gives ends with the next request. {who} stays: {left}."
    if ctx.project_id is None:
        return f"{who} opens nothing in this tenant any more, from the next request on."
    return f"{who} opens nothing in this project any more, from the next request on; elsewhere nothing ends."


def is_shown(ctx: Context, project_id: UUID | None) -> bool:
    """Whether the reader's place shows what stands in a project: nobody learns of others from this page."""
    return ctx.project_id is None or project_id in (None, ctx.project_id)


def place_of(row: Membership) -> str:
    """Where a membership holds."""
    return seen(row.project.name) if row.project else "the whole tenant"


def accounts_of(ctx: Context, row: Membership) -> list[ServiceAccount]:
    """The machines of the reader's place that a person answers for."""
    rows = service_accounts(ctx.project_id).filter(owner=row.person, state=ServiceAccountState.ACTIVE)
    return list(rows.order_by("slug")) if row.kind == SubjectKind.PERSON else []


def _accounts(ctx: Context, then: Held) -> Iterator[str]:
    if then.row.kind != SubjectKind.PERSON:
        yield "The account itself stays, without this membership. To end it everywhere, revoke it."
        return
    gone = not any(one.kind == SubjectKind.PERSON for one in then.others)
    for account in accounts_of(ctx, then.row):
        if gone:
            yield (
                f"The service account {seen(account.name)} is revoked for good: nobody else answers for it."
            )
            continue
        rows = Membership.objects.filter(subject=account.subject, state=MembershipState.ACTIVE)
        for one in rows.select_related("project"):
            if is_shown(ctx, one.project_id) and not then.reaches(one.project_id):
                yield f"The service account {seen(account.name)}, their machine, leaves {place_of(one)}."


def loans_lost(ctx: Context, then: Held) -> list[Delegation]:
    """Roles that are lent by or to the subject, and for which there would be no ground any more."""
    rows = [one for one in delegations_of(then.row.subject) if is_shown(ctx, one.project_id)]
    return [one for one in rows if not _has_ground(then, one)]


def _has_ground(then: Held, loan: Delegation) -> bool:
    if loan.delegator == then.row.subject:
        return then.holds(loan.role, loan.project_id)
    return then.reaches(loan.project_id)


def _loan(row: Delegation) -> str:
    who, whom = seen(row.delegator), seen(row.delegate)
    return (
        f"The role {row.role} that {who} lent to {whom} until {row.expires_at:%d %b %Y %H:%M} UTC ends too."
    )


def _nobody_left(row: Membership, lost: Collection[Delegation]) -> list[str]:
    """What nobody could do in the project any more; nothing is said of the whole tenant, or of a crowd."""
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
