"""TakeAuthorization: the gate at execution. From here on an effect may have happened."""

from dataclasses import replace
from uuid import UUID

import approvals.operations as approvals
from approvals.selectors import AuthorizationView, authorizations_of_attempt
from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.recording import save
from projects.operations import lock_active_project, lock_project
from registry.operations import hold_loadable
from runs.errors import AttemptNotFound, LeaseOver, ReleaseRevoked, RunNotWorking
from runs.models import Attempt
from runs.operations.holding import HeldAttempt, lock_held
from runs.operations.timing import grace, is_timed_out, renewed, took_too_long


@command("TakeAuthorization")
def take_authorization(
    ctx: Context,
    *,
    attempt_id: UUID,
    lease_id: UUID,
    fencing_token: int,
    approval_id: UUID,
    proposal_hash: str,
) -> AuthorizationView:
    """Consume the approval for exactly this proposal, under this lease; renews the lease.

    Guards: the project is Active, the run Running or WaitingForApproval, the step's own time not over, the
    release still loadable, the approval approved, within its validity, this step's, of this hash, and unused.
    The identical repeat by the same holder gets the same answer, whatever became of the run meanwhile: it
    was taken, and a lost answer does not change that; of a run that does not go on it renews nothing. Errors:
    `StaleFencingToken`, `RunNotWorking`, `NotAuthorized`, `AuthorizationUsed` (409), `LeaseOver`,
    `ReleaseRevoked`, `ApprovalLapsed` (410), `ProjectNotActive` (422).
    """
    project_id, release_id = _above(attempt_id)
    scope = replace(ctx, project_id=project_id)
    loadable = hold_loadable(ctx, release_id)  # above the run; judged after the token, which says most
    lock_project(scope)
    held = lock_held(ctx, attempt_id, lease_id, fencing_token)
    _require_not_lapsed(held)  # the repeat, too, would renew the lease
    if not _taken_before(held, approval_id, proposal_hash):
        lock_active_project(scope)
        _require_going_on(held, loadable=loadable)
    taken = approvals.consume(
        ctx,
        approval_id=approval_id,
        run_id=held.run.id,
        step_id=held.step.id,
        attempt_id=held.attempt.id,
        lease_id=held.lease.id,
        fencing_token=held.lease.fencing_token,
        proposal_hash=proposal_hash,
    )
    if held.run.is_working:
        held.lease.expires_at = max(renewed(held.step, held.lease, now()), held.lease.expires_at)
        save(held.lease)
    return taken


def _taken_before(held: HeldAttempt, approval_id: UUID, proposal_hash: str) -> bool:
    """Return whether this is the identical repeat, by the same holder under the same lease."""
    wanted = (approval_id, held.lease.id, held.lease.fencing_token, proposal_hash)
    return any(
        wanted == (one.approval_id, one.lease_id, one.fencing_token, one.proposal_hash)
        for one in authorizations_of_attempt(held.attempt.id)
    )


def _above(attempt_id: UUID) -> tuple[UUID, UUID]:
    """The attempt's project and release, which its run has pinned."""
    scope = Attempt.objects.filter(pk=attempt_id).values_list("run__project_id", "run__release_id").first()
    if scope is None:
        raise AttemptNotFound(f"There is no attempt {attempt_id} here.")
    return UUID(str(scope[0])), UUID(str(scope[1]))


def _require_not_lapsed(held: HeldAttempt) -> None:
    if now() > held.lease.expires_at + grace():
        raise LeaseOver("The lease ended before this call: nothing may be done under it.")


def _require_going_on(held: HeldAttempt, *, loadable: bool) -> None:
    if not held.run.is_working:
        raise RunNotWorking(f"The run is {held.run.state}: nothing new is begun for it.")
    if is_timed_out(held.step, held.lease, now()):
        raise LeaseOver(f"{took_too_long(held.step)} Nothing new is begun under this lease.")
    if not loadable:
        raise ReleaseRevoked("The release was taken back: nothing may be done with it any more.")
