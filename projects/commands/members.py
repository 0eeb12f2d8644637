"""Who is what in a project. A membership ends and another begins; nothing is rewritten."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import NotFound, VersionMismatch
from factory.kernel.locking import lock, lock_many, one_at_a_time
from factory.kernel.reasons import remark
from factory.kernel.recording import audit, record
from projects.commands.identities import end_sign_ins
from projects.commands.inputs import (
    NewMember,
    grant_faults,
    member_faults,
    ordered,
    refuse,
    refuse_deciding_machine,
    scope_faults,
)
from projects.commands.joining import join, known_members
from projects.commands.reach import lock_scope, require_may_give, require_other_admin
from projects.errors import MemberRemoved
from projects.models import Membership, ServiceAccount
from projects.operations import revoke_groundless
from projects.selectors import is_member_anywhere, reaches
from projects.states import GRANTS, ROLES, MembershipState, ServiceAccountState, SubjectKind


@command("AddMember")
def add_member(ctx: Context, *, project_id: UUID | None, member: NewMember) -> str:
    """Make somebody a member of a project, or of the whole tenant where `project_id` is None.

    Guards: an admin of that scope; only a PlatformAdmin makes another. Emits: nothing. Errors:
    `NotFound`, `InvalidInput`, `RoleOutOfReach`, `MemberExists`, `AddressTaken` or `IdentityTaken` where this
    person is a member by another name, `RoleOfPeople` for a service account.
    Answers with the membership's id.
    """
    refuse(member_faults(member, tenant_wide=project_id is None, pointer=""), "The member is not valid.")
    lock_scope(ctx, project_id)
    require_may_give(ctx, project_id, member.roles)
    return str(join(ctx, project_id, member, known_members(ctx, [member]), at=now(), pointer="").id)


@command("ChangeMember")
def change_member(
    ctx: Context, *, membership_id: UUID, version: int, roles: Sequence[str], grants: Sequence[str]
) -> None:
    """Give a member other roles and grants; they hold from this commit on.

    Guards: as for adding; `version` is the one that the caller saw. Emits: nothing. Errors:
    `NotFound`, `InvalidInput`, `RoleOfPeople`, `RoleOutOfReach`, `MemberRemoved`, `VersionMismatch`,
    `LastAdministrator`.
    """
    row = lock_member(ctx, membership_id)
    faults = grant_faults(roles, grants, "")
    faults += scope_faults(roles, tenant_wide=row.project_id is None, pointer="")
    refuse(faults, "A member cannot be that.")
    if row.kind == SubjectKind.SERVICE:
        refuse_deciding_machine(roles, "")
    require_may_give(ctx, row.project_id, (*roles, *row.roles))
    if row.version != version:
        raise VersionMismatch(f"The membership is at version {row.version}, not {version}.")
    require_other_admin(ctx, row, roles)
    before = {"rolesBefore": list(row.roles), "grantsBefore": list(row.grants)}
    row.change(at=now(), roles=ordered(roles, ROLES), grants=ordered(grants, GRANTS))
    record(ctx, row, "MemberChanged", detail={"roles": row.roles, "grants": row.grants, **before})
    revoke_groundless(ctx, row.subject, "RoleWithdrawn")


@command("RemoveMember")
def remove_member(ctx: Context, *, membership_id: UUID, reason: str = "") -> None:
    """End a membership. What the member did stays theirs.

    Where a person is no member any more they answer for nothing: the memberships of their service
    accounts there end too, and when none is left of the person's own, the accounts are revoked, and their
    sign-ins are nobody's any more.
    Guards: as for adding. Emits: nothing. Errors: `InvalidInput`, `NotFound`, `RoleOutOfReach`,
    `MemberRemoved`, `LastAdministrator`.
    """
    reason = remark(reason)
    row = lock_member(ctx, membership_id, among_people=True)
    require_may_give(ctx, row.project_id, tuple(row.roles))
    require_other_admin(ctx, row)
    at = now()
    row.remove(at=at)
    record(ctx, row, "MemberRemoved")
    audit(ctx, "RemoveMember", subject=f"membership:{row.id}", reason=reason, stream=row.id)
    revoke_groundless(ctx, row.subject, "MemberRemoved")
    if row.kind == SubjectKind.PERSON:
        _withdraw_accounts_of(ctx, row.person, at)
        if not is_member_anywhere(row.person):
            end_sign_ins(ctx, row.person, at)


def lock_member(ctx: Context, membership_id: UUID, *, among_people: bool = False) -> Membership:
    """Lock the active membership after its scope; another scope's looks like none.

    With `among_people` nobody else in the tenant joins or leaves meanwhile: what is asked about the person's
    memberships in other scopes stays so.
    """
    missing = NotFound("There is no such member here.")
    seen = Membership.objects.filter(pk=membership_id).first()
    if seen is None or ctx.project_id not in (None, seen.project_id):
        raise missing
    lock_scope(ctx, seen.project_id)
    if among_people:
        one_at_a_time("projects.people", ctx.tenant_id)
    row = lock(Membership, membership_id, missing=missing)
    if row.state != MembershipState.ACTIVE:
        raise MemberRemoved(f"{row} is no member any more, since {row.removed_at:%d %b %Y %H:%M:%S} UTC.")
    return row


def _withdraw_accounts_of(ctx: Context, owner: str, at: datetime) -> None:
    accounts = lock_many(ServiceAccount.objects.filter(owner=owner, state=ServiceAccountState.ACTIVE))
    gone = not is_member_anywhere(owner)
    for account in accounts:
        _end_unanswered(ctx, account, at)
        if gone:
            account.revoke(at=at)
            record(ctx, account, "OwnerRemoved")


def _end_unanswered(ctx: Context, account: ServiceAccount, at: datetime) -> None:
    """End the account's memberships in scopes that its owner no longer reaches."""
    rows = Membership.objects.filter(subject=account.subject, state=MembershipState.ACTIVE)
    for member in lock_many(rows):
        if not reaches(account.owner, member.project_id):
            member.remove(at=at)
            record(ctx, member, "OwnerRemoved")
