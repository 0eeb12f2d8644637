"""Lending a role: for an absence, dated, on record with both names, and taken back at any time."""

from datetime import datetime, timedelta
from uuid import UUID

from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import FieldError, InvalidInput, NotFound
from factory.kernel.locking import lock
from factory.kernel.reasons import reason_faults
from factory.kernel.recording import audit, record
from projects.commands.inputs import refuse, text_faults
from projects.commands.reach import lock_own_project
from projects.errors import (
    DelegateNotMember,
    DelegationEnded,
    DelegationExists,
    DelegationNotDue,
    RoleNotHeld,
)
from projects.models import Delegation
from projects.operations import delegation_changed, end_delegation
from projects.selectors import holds, may_end, reaches, spelled
from projects.states import LENDABLE, DelegationState

LONGEST = timedelta(days=90)
"""A longer absence is a change of members, not a loan."""
MAX_REASON = 2000


@command("LendRole")
def lend_role(
    ctx: Context, *, project_id: UUID, role: str, delegate: str, expires_at: datetime, reason: str
) -> str:
    """Lend one role of one's own in a project to another member until `expires_at`. Answers with its id.

    Guards: the caller holds the role by a membership of their own (what was lent to them is not theirs to
    lend), the delegate is another person and a member, the end is within 90 days, there is a reason.
    Emits: `DelegationChanged`. Errors: `NotFound`, `InvalidInput`, `RoleNotHeld`, `DelegateNotMember`,
    `DelegationExists`.
    """
    _check_words(role, delegate, reason)
    lock_own_project(ctx, project_id)
    delegate = spelled(delegate)
    at = now()
    _check_time(expires_at, at)
    _require_two_members(ctx, project_id, role, delegate)
    row = Delegation(
        tenant_id=ctx.tenant_id,
        project_id=project_id,
        role=role,
        delegator=ctx.actor.subject,
        delegate=delegate,
        reason=reason.strip(),
        lent_at=at,
        expires_at=expires_at,
    )
    _refuse_second(row)
    detail = {"role": role, "delegator": row.delegator, "delegate": delegate, "expiresAt": expires_at}
    record(ctx, row, "RoleLent", delegation_changed(row), detail=detail)
    audit(ctx, "LendRole", subject=f"delegation:{row.id}", reason=row.reason, detail=detail, stream=row.id)
    return str(row.id)


@command("RevokeDelegation")
def revoke_delegation(ctx: Context, *, delegation_id: UUID) -> None:
    """Take a lent role back, at once; or give it back.

    Guards: either of the two, or an admin of the project. Emits: `DelegationChanged`. Errors: `NotFound`,
    `RoleNotHeld`, `DelegationEnded`.
    """
    row = _locked(ctx, delegation_id)
    if not may_end(ctx, row):
        raise RoleNotHeld("A delegation is ended by one of its two members, or by an admin of the project.")
    if row.state != DelegationState.ACTIVE:
        raise DelegationEnded(
            f"This delegation has been {row.state} since {row.ended_at:%d %b %Y %H:%M:%S} UTC."
        )
    end_delegation(ctx, row, "RevokeRequested", now())


@command("ExpireDelegation")
def expire_delegation(ctx: Context, *, delegation_id: UUID, expires_at: datetime) -> bool:
    """Record that a delegation's time is over; says whether it did. It gave nothing since that moment.

    What has ended, or does not end at exactly `expires_at`, is left alone. Emits: `DelegationChanged`.
    Errors: `NotFound`, `DelegationNotDue`.
    """
    row = _locked(ctx, delegation_id)
    if row.state != DelegationState.ACTIVE or row.expires_at != expires_at:
        return False
    at = now()
    if at < row.expires_at:
        raise DelegationNotDue(
            f"This delegation does not expire before {row.expires_at:%d %b %Y %H:%M:%S} UTC."
        )
    row.expire(at=at, by=ctx.actor.subject)
    record(ctx, row, "ExpiresAtPassed", delegation_changed(row))
    return True


def _check_words(role: str, delegate: str, reason: str) -> None:
    faults = reason_faults(reason, most=MAX_REASON) + text_faults(delegate, "/delegate", limit=255)
    if role not in LENDABLE:
        faults.append(FieldError("/role", f"One of {', '.join(LENDABLE)}."))
    refuse(faults, "The delegation is not valid.")


def _check_time(expires_at: datetime, at: datetime) -> None:
    if expires_at.tzinfo is None or not at < expires_at <= at + LONGEST:
        fault = FieldError("/expiresAt", f"After now, and within {LONGEST.days} days.")
        raise InvalidInput("A delegation has an end that is near.", errors=[fault])


def _require_two_members(ctx: Context, project_id: UUID, role: str, delegate: str) -> None:
    delegator = ctx.actor.subject
    if role not in ctx.actor.roles or not holds(delegator, project_id, role):
        raise RoleNotHeld(f"{delegator} is no {role} here by a membership of their own, so cannot lend it.")
    if delegate == delegator or not reaches(delegate, project_id):
        fault = FieldError("/delegate", "Name another person who is a member of the project.")
        raise DelegateNotMember(f"{delegate} is no other member of the project.", errors=[fault])


def _refuse_second(new: Delegation) -> None:
    same = {"delegator": new.delegator, "delegate": new.delegate, "role": new.role}
    existing = Delegation.objects.filter(
        project_id=new.project_id, state=DelegationState.ACTIVE, **same
    ).first()
    if existing is not None:
        raise DelegationExists(
            f"{new.role} is delegated already, until {existing.expires_at:%d %b %Y %H:%M:%S} UTC; "
            "revoke that delegation to set another end.",
            extra={"delegationId": str(existing.id)},
        )


def _locked(ctx: Context, delegation_id: UUID) -> Delegation:
    """Lock the delegation after its project; another scope's looks like none."""
    missing = NotFound("There is no such delegation here.")
    seen = Delegation.objects.filter(pk=delegation_id).first()
    if seen is None or ctx.project_id not in (None, seen.project_id):
        raise missing
    lock_own_project(ctx, seen.project_id)
    return lock(Delegation, delegation_id, missing=missing)
