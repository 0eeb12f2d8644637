"""Who may decide, who may see: judged by the memberships of this moment."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from approvals.errors import MachineNeverDecides, NotEligible, SeparationOfDuties
from approvals.models import ApprovalRequest, Vote
from approvals.policy.messages import format_rule
from approvals.selectors.requests import approval, votes_by_request
from approvals.selectors.views import ApprovalView
from factory.identity.directory import EffectiveGrants, HeldDelegation, directory
from factory.kernel.context import Context
from factory.kernel.errors import Forbidden
from projects import selectors as projects
from projects.selectors import MemberView
from projects.states import SubjectKind

BREAKS_GLASS = "PlatformAdmin"


class ApproverRuleSource(Protocol):
    """Read of a request, or of one that there might be, who may decide."""

    @property
    def approver_rule(self) -> str: ...
    @property
    def approver_roles(self) -> Sequence[str]: ...
    @property
    def requested_by(self) -> str: ...
    @property
    def requester_person(self) -> str: ...
    @property
    def author_person(self) -> str: ...


@dataclass(frozen=True, slots=True)
class EligibilityResult:
    """Show a member of the project before one request: whether they may decide, and if not, why not."""

    subject: str
    person: str
    display_name: str
    email: str
    roles: tuple[str, ...]
    may_decide: bool
    why_not: str
    acting_for: str = ""


def involved_in(rule: ApproverRuleSource) -> frozenset[str]:
    """Return everybody who answers for the request: as recorded when it was asked, and as things are now."""
    return projects.people_behind((rule.requested_by, rule.requester_person, rule.author_person))


@dataclass(frozen=True, slots=True)
class Right:
    """Say why somebody may decide: by a role of their own, by a delegated one, or as break-glass."""

    subject: str
    person: str
    role: str
    delegation: HeldDelegation | None = None
    break_glass: bool = False

    @property
    def acting_for(self) -> str:
        """Whose role it is, where it was lent."""
        return self.delegation.delegator if self.delegation else ""

    @property
    def people(self) -> frozenset[str]:
        """Return the names whose yes this is."""
        return frozenset({self.person, self.acting_for} - {""})


def right_of(
    rule: ApproverRuleSource,
    grants: EffectiveGrants,
    *,
    subject: str,
    involved: Collection[str],
    roles: Collection[str] | None = None,
    break_glass: bool = False,
    machine: bool = False,
) -> Right:
    """Apply the one rule of who may decide: first the role, then the separation of duties, and
    then that a machine never decides.

    People are compared, not accounts: who owns the service account that asked has asked. A lent role is
    of no use where its owner asked. `roles` is what a token leaves of the standing, `machine` that it is a
    machine's token.

    Raises `NotEligible`, `SeparationOfDuties` or `MachineNeverDecides`.
    """
    held = grants.roles if roles is None else grants.roles & frozenset(roles)
    own, delegations = _ways_in(rule, grants, held | grants.withheld, break_glass)
    if not own and not delegations:
        raise NotEligible(_not_named(rule, held, break_glass))
    if {subject, grants.person} & set(involved):
        raise SeparationOfDuties("Who asked for it, or wrote it, never decides on it: a second person does.")
    if machine or grants.machine:
        raise MachineNeverDecides("A service account never decides: a person does, by a token of their own.")
    if own:
        return Right(subject, grants.person, own[0], break_glass=break_glass)
    for delegation in delegations:
        if delegation.delegator not in involved:
            return Right(subject, grants.person, delegation.role, delegation)
    raise SeparationOfDuties(
        f"The role is lent by {delegations[0].delegator}, who asked for it or wrote it: "
        "a lent role decides on nothing of its owner's."
    )


def _ways_in(
    rule: ApproverRuleSource, grants: EffectiveGrants, held: frozenset[str], break_glass: bool
) -> tuple[list[str], list[HeldDelegation]]:
    if break_glass:
        return sorted({BREAKS_GLASS} & (grants.own_roles | grants.withheld) & held), []
    wanted = set(rule.approver_roles) & held
    own = grants.own_roles | grants.withheld
    return sorted(wanted & own), [
        delegation for delegation in grants.delegations if delegation.role in wanted
    ]


def _not_named(rule: ApproverRuleSource, held: frozenset[str], break_glass: bool) -> str:
    if break_glass:
        return "Break-glass is for a PlatformAdmin alone."
    other = " A PlatformAdmin may break the glass, with a reason." if BREAKS_GLASS in held else ""
    return f"It is decided by {format_rule(rule.approver_rule)}.{other}"


def right_to_decide(
    ctx: Context, request: ApprovalView | ApprovalRequest, *, break_glass: bool = False
) -> Right:
    """Return the caller's right in the request's project at this moment; a token's roles can only narrow it.

    Raises `NotEligible`, `SeparationOfDuties` or `MachineNeverDecides`: then they may not decide.
    """
    actor = ctx.actor
    grants = directory().grants_of(actor.subject, ctx.tenant_id, request.project_id)
    if grants is None:
        raise NotEligible("The caller is no member of the project.")
    involved = involved_in(request)
    came_as = projects.people_behind([actor.address]) | {actor.person}
    if not involved.isdisjoint(came_as):  # as the token said, besides what the directory says now
        involved |= {actor.subject}
    return right_of(
        request,
        grants,
        subject=actor.subject,
        involved=involved,
        roles=actor.roles,
        break_glass=break_glass,
        machine=actor.kind == "service",
    )


def refusal_for(ctx: Context, view: ApprovalView, *, break_glass: bool = False) -> Forbidden | None:
    """Return why the caller may not decide on a request, or None."""
    try:
        right_to_decide(ctx, view, break_glass=break_glass)
    except Forbidden as no:
        return no
    return None


class Electorate:
    """Remember who answers for requests, and the grants of who voted: asked once each, for one look at many.

    It is of one moment: a decision makes its own.
    """

    def __init__(self) -> None:
        self._involved: dict[tuple[str, ...], frozenset[str]] = {}
        self._grants: dict[tuple[str, UUID | None], EffectiveGrants | None] = {}
        self._behind: dict[Right, frozenset[str]] = {}

    def involved(self, row: ApprovalView | ApprovalRequest) -> frozenset[str]:
        """Return everybody who answers for it."""
        key = (row.requested_by, row.requester_person, row.author_person)
        if key not in self._involved:
            self._involved[key] = involved_in(row)
        return self._involved[key]

    def behind(self, right: Right) -> frozenset[str]:
        """Return everybody whose yes it is: two rights that share somebody count once."""
        if right not in self._behind:
            self._behind[right] = projects.people_behind(right.people)
        return self._behind[right]

    def grants_of(self, subject: str, row: ApprovalView | ApprovalRequest) -> EffectiveGrants | None:
        """Return what a voter is granted at this moment where the request is."""
        key = (subject, row.project_id)
        if key not in self._grants:
            self._grants[key] = directory().grants_of(subject, row.tenant_id, row.project_id)
        return self._grants[key]


def counted_votes(
    row: ApprovalView | ApprovalRequest, votes: Iterable[Vote], electorate: Electorate | None = None
) -> list[tuple[Vote, Right]]:
    """Return the votes that count at this moment, oldest first: of who may still decide, each person once.

    All of it is judged again: a vote of somebody whose role, delegation or membership has ended is kept, and
    does not count. Two members who are known by one address are one person.
    """
    electorate = electorate or Electorate()
    counted: list[tuple[Vote, Right]] = []
    people: set[str] = set()
    for vote in votes:
        right = _right_of_vote(row, vote, electorate)
        if right is not None and not electorate.behind(right) & people:
            counted.append((vote, right))
            people |= electorate.behind(right)
    return counted


@dataclass(frozen=True, slots=True)
class Judged:
    """Say of a vote whether it counts at this moment."""

    vote: Vote
    counts: bool


def votes_judged(view: ApprovalView) -> list[Judged]:
    """Return the votes on a request, for showing: once it is closed, those that were counted."""
    return votes_judged_of([view])[view.id]


def votes_judged_of(views: Sequence[ApprovalView]) -> dict[UUID, list[Judged]]:
    """Return `votes_judged` of many requests, asking once for each person who voted."""
    electorate = Electorate()
    votes = votes_by_request([view.id for view in views if view.quorum > 1])
    return {view.id: _judged(view, votes.get(view.id, []), electorate) for view in views}


def _judged(view: ApprovalView, votes: Sequence[Vote], electorate: Electorate) -> list[Judged]:
    if not votes or not view.is_pending:
        return [Judged(vote, True) for vote in votes]
    counted = {vote.id for vote, _ in counted_votes(view, votes, electorate)}
    return [Judged(vote, vote.id in counted) for vote in votes]


def voted_already(right: Right, votes: Iterable[Judged], electorate: Electorate | None = None) -> str:
    """Return why the reader's yes would not count: it is there already, or that of who shares the role."""
    counting = [judged.vote for judged in votes if judged.counts]
    if any(vote.person == right.person for vote in counting):
        return "You have approved."
    behind = (electorate or Electorate()).behind(right) if counting else frozenset()
    for vote in counting:
        if behind & {vote.person, vote.acting_for} - {""}:
            return f"{vote.voter} has approved, and shares your role or address: the two of you count once."
    return ""


def _right_of_vote(row: ApprovalView | ApprovalRequest, vote: Vote, electorate: Electorate) -> Right | None:
    same = (vote.version, vote.proposal_hash) == (row.version, row.proposal_hash)
    grants = electorate.grants_of(vote.voter, row) if same else None
    if grants is None:
        return None
    try:
        return right_of(row, grants, subject=vote.voter, involved=electorate.involved(row))
    except Forbidden:
        return None


def who_may_decide(approval_id: UUID) -> list[EligibilityResult]:
    """Return the project's members before this request, those who may decide first."""
    view = approval(approval_id)
    return candidates(view, view.project_id)


def candidates(rule: ApproverRuleSource, project_id: UUID | None) -> list[EligibilityResult]:
    """Return the project's members before an approver rule, those who may decide first."""
    involved = involved_in(rule)
    by_subject: dict[str, list[MemberView]] = {}
    for member in projects.members(project_id):
        by_subject.setdefault(member.subject, []).append(member)
    delegations: dict[str, list[HeldDelegation]] = {}
    for row in projects.delegations_in_force(project_id):
        delegation = HeldDelegation(row.id, row.role, row.delegator, row.expires_at)
        delegations.setdefault(row.delegate, []).append(delegation)
    results = [_candidate(rule, own, delegations.get(who, []), involved) for who, own in by_subject.items()]
    return sorted(results, key=lambda c: (not c.may_decide, c.display_name or c.subject))


def _candidate(
    rule: ApproverRuleSource,
    memberships: list[MemberView],
    delegations: Sequence[HeldDelegation],
    involved: Collection[str],
) -> EligibilityResult:
    member = memberships[0]
    own = tuple(dict.fromkeys(role for membership in memberships for role in membership.roles))
    further = tuple(delegation for delegation in delegations if delegation.role not in own)
    machine = member.kind == SubjectKind.SERVICE
    roles = frozenset(own) | {delegation.role for delegation in further}
    grants = EffectiveGrants(member.person, roles, delegations=further, machine=machine)
    acting_for, why_not = "", ""
    try:
        acting_for = right_of(rule, grants, subject=member.subject, involved=involved).acting_for
    except Forbidden as no:
        why_not = no.detail
    return EligibilityResult(
        subject=member.subject,
        person=member.person,
        display_name=member.display_name,
        email=member.email,
        roles=own,
        may_decide=not why_not,
        why_not=why_not,
        acting_for=acting_for,
    )


def eligible_people(
    project_id: UUID | None, roles: Collection[str], never: Collection[str]
) -> frozenset[str]:
    """Return the distinct people who could decide: members with such a role who are none of `never`.

    Loans add nobody: who lends and who borrows count once.
    """
    if not roles:
        return frozenset()
    members = [m for m in projects.members(project_id, roles) if m.kind == SubjectKind.PERSON]
    return frozenset(m.person for m in members if not {m.subject, m.person} & set(never))
