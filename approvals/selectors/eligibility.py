"""Who may decide, who may see: judged by the memberships of this moment."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from django.db.models import Q, QuerySet

from approvals.errors import NotEligible, SeparationOfDuties
from approvals.models import ApprovalRequest
from approvals.selectors.requests import approval, requests
from approvals.selectors.views import ApprovalView
from approvals.states import ApprovalState
from factory.context import Context
from factory.errors import Forbidden
from factory.identity.directory import Standing, directory
from projects import selectors as projects
from projects.selectors import MemberView

SEES_THE_PROJECT = frozenset({"Reviewer", "WorkspaceAdmin", "Operator", "PlatformAdmin", "Observer"})
"""Roles that see every request of their project; anybody else sees what they asked for."""

PAYLOADS = "factory.payloads.read"


class Gate(Protocol):
    """What of a request, or of one that there might be, says who may decide."""

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
class Candidate:
    """A member of the project before one request: whether they may decide, and if not, why not."""

    subject: str
    person: str
    display_name: str
    email: str
    roles: tuple[str, ...]
    may_decide: bool
    why_not: str


def involved_in(gate: Gate) -> frozenset[str]:
    """Everybody who answers for the request: as recorded when it was asked, and as things are now."""
    named = {gate.requested_by, gate.requester_person, gate.author_person} - {""}
    return frozenset(named | {projects.person_of(subject) for subject in named})


def refusal(
    gate: Gate, *, subject: str, person: str, roles: Collection[str], involved: Collection[str]
) -> Forbidden | None:
    """The one rule of who may decide, for every path: first the role, then the separation of duties.

    People are compared, not accounts: who owns the service account that asked has asked.
    """
    if not set(gate.approver_roles) & set(roles):
        return NotEligible(f"It is decided by {gate.approver_rule}.")
    if {subject, person} & set(involved):
        return SeparationOfDuties("Who asked for it, or wrote it, never decides on it: a second person does.")
    return None


def standing_to_decide(ctx: Context, gate: ApprovalView | ApprovalRequest) -> Standing:
    """What the caller is in the request's project at this moment; what a token asserts can only narrow it.

    Raises `NotEligible` or `SeparationOfDuties`: then they may not decide.
    """
    actor = ctx.actor
    standing = directory().grants_of(actor.subject, ctx.tenant_id, gate.project_id)
    if standing is None:
        raise NotEligible("The caller is no member of the project.")
    roles, involved = standing.roles & actor.roles, involved_in(gate)
    for person in (standing.person, actor.person or standing.person):
        found = refusal(gate, subject=actor.subject, person=person, roles=roles, involved=involved)
        if found is not None:
            raise found
    return standing


def refusal_for(ctx: Context, view: ApprovalView) -> Forbidden | None:
    """Why the caller may not decide on a request, or None."""
    try:
        standing_to_decide(ctx, view)
    except Forbidden as no:
        return no
    return None


def who_may_decide(approval_id: UUID) -> list[Candidate]:
    """The project's members before this request, those who may decide first."""
    view = approval(approval_id)
    return candidates(view, view.project_id)


def candidates(gate: Gate, project_id: UUID | None) -> list[Candidate]:
    """The project's members before a gate, those who may open it first."""
    involved = involved_in(gate)
    by_subject: dict[str, list[MemberView]] = {}
    for member in projects.members(project_id):
        by_subject.setdefault(member.subject, []).append(member)
    found = [_candidate(gate, memberships, involved) for memberships in by_subject.values()]
    return sorted(found, key=lambda c: (not c.may_decide, c.display_name or c.subject))


def _candidate(gate: Gate, memberships: list[MemberView], involved: Collection[str]) -> Candidate:
    member = memberships[0]
    roles = tuple(dict.fromkeys(role for one in memberships for role in one.roles))
    no = refusal(gate, subject=member.subject, person=member.person, roles=roles, involved=involved)
    return Candidate(
        subject=member.subject,
        person=member.person,
        display_name=member.display_name,
        email=member.email,
        roles=roles,
        may_decide=no is None,
        why_not="" if no is None else no.detail,
    )


def somebody_eligible(project_id: UUID | None, roles: Collection[str], never: Collection[str]) -> bool:
    """Whether the gate can be opened at all: a member with such a role who is none of `never`."""
    return any(
        not {member.subject, member.person} & set(never) for member in projects.members(project_id, roles)
    )


def reachable(ctx: Context) -> QuerySet[ApprovalRequest]:
    """The requests within the caller's trusted scope: of their project, and of the tenant as a whole.

    A token without a project reaches no project's requests; a session that has chosen none stands in
    the whole tenant, by memberships of the whole tenant.
    """
    of_tenant = Q(project_id__isnull=True)
    if ctx.project_id is not None:
        return requests().filter(of_tenant | Q(project_id=ctx.project_id))
    everywhere = ctx.actor.kind == "system" or ctx.channel in ("admin", "cli")
    return requests() if everywhere else requests().filter(of_tenant)


def visible(ctx: Context) -> QuerySet[ApprovalRequest]:
    """The requests that the caller may see: all within their scope, or only their own."""
    rows, actor = reachable(ctx), ctx.actor
    if actor.kind == "system" or actor.roles & SEES_THE_PROJECT:
        return rows
    own = {actor.subject, actor.person} - {""}
    return rows.filter(Q(requested_by__in=own) | Q(requester_person__in=own))


def mine(ctx: Context) -> QuerySet[ApprovalRequest]:
    """What waits for the caller: pending, within their scope, and theirs to decide.

    The roles and the people are compared by the database, so that a page of them is a page.
    """
    actor = ctx.actor
    rows = reachable(ctx).filter(state=ApprovalState.PENDING)
    by_role = Q(pk__in=[])
    for role in actor.roles:
        by_role |= Q(approver_roles__contains=[role])
    me = {actor.subject, actor.person} - {""}
    involved = Q(requested_by__in=me) | Q(requester_person__in=me) | Q(author_person__in=me)
    return rows.filter(by_role).exclude(involved)


def may_see_proposal(ctx: Context, view: ApprovalView) -> bool:
    """Payloads are for those with the scope and the grant, and always for who may decide."""
    return reads_payloads(ctx) or refusal_for(ctx, view) is None


def reads_payloads(ctx: Context) -> bool:
    """Whether the caller reads inputs, outputs and proposals: it needs the scope and the grant."""
    actor = ctx.actor
    return actor.kind == "system" or (PAYLOADS in actor.scopes and "payloads" in actor.grants)
