"""RequestApproval: the holder proposes exactly what it will do, and a person decides before it happens."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import approvals.operations as approvals
from approvals.selectors import ApprovalView, PolicyView, approval, evaluate
from approvals.selectors import policy_revision as pinned_policy
from approvals.states import ActionClass, Effect, SubjectType
from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import FieldError, InvalidInput, TooLarge
from factory.kernel.hashing import canonical, digest
from factory.kernel.recording import save
from runs.errors import ClassAboveStep, EnvironmentUnknown, PinsMismatch, ProposalChanged, RunNotWorking
from runs.models import Lease, Run, Step
from runs.operations.holding import HeldAttempt, LockedAttempt, current_lease, lock_attempt, why_not_held
from runs.operations.moving import wait_for_approval
from runs.operations.parking import park as park_attempt
from runs.selectors.answers import ApprovalResult
from runs.selectors.approvers import approvers_of
from runs.selectors.assignments import decision_note
from runs.selectors.limits import environment_slug
from runs.states import AttemptState, LeaseState, RunState

MOST_CHECKPOINT = 256 * 1024


@dataclass(frozen=True, slots=True)
class ParkRequest:
    """The wish to hand the lease back while a person decides, with what the next holder needs."""

    checkpoint: Any


@dataclass(frozen=True, slots=True)
class Pins:
    """Hold what the worker believes that it works under."""

    release_id: UUID
    snapshot_id: UUID
    policy_revision: str


@command("RequestApproval")
def request_approval(
    ctx: Context,
    *,
    attempt_id: UUID,
    lease_id: UUID,
    fencing_token: int,
    release_id: UUID,
    snapshot_id: UUID,
    policy_revision: str,
    action_class: str,
    environment_id: UUID | None,
    proposal: Any,
    proposal_hash: str,
    summary: str,
    park: ParkRequest | None = None,
) -> ApprovalResult:
    """Ask whether exactly this proposal may be carried out: allow, or a request that a person decides.

    The class that counts is the highest of the worker's word, the manifest's tool and the node. The run
    becomes WaitingForApproval. With `park` the lease is Released and the attempt Parked in the same
    transaction. The same hash again gives the same request, and its decision once there is one (then the
    lease stays, even with `park`); the repeat of a call that parked is told so again; another hash makes
    the older one Stale. What a waiver of the run's template serves is answered at once with its decision,
    and the run does not wait. Emits ApprovalRequested, RunStateChanged. Errors: `StaleFencingToken`,
    `PinsMismatch`, `RunNotWorking` (409), `LeaseOver` (410), `ProposalChanged`, `EnvironmentUnknown`
    (422), `ClassAboveStep`, `PolicyDenied` (403), `TooLarge`, `InvalidInput`.
    """
    _check_checkpoint(park)
    true_hash = digest(proposal, "/proposal")
    if true_hash != proposal_hash:
        raise ProposalChanged(f"The proposal's hash is {true_hash}.")
    locked = lock_attempt(ctx, attempt_id)
    lease = current_lease(ctx, locked, lease_id, fencing_token)
    if lease is None or lease.state != LeaseState.HELD:
        return _parked_before(ctx, locked, lease_id, fencing_token, proposal_hash if park else "")
    held = HeldAttempt(locked.run, locked.step, locked.attempt, lease)
    if not held.run.is_working:
        raise RunNotWorking(f"The run is {held.run.state}: nothing new is begun for it.")
    _check_pins(held.run, Pins(release_id, snapshot_id, policy_revision))
    _check_class(held.step, action_class)
    policy = pinned_policy(held.run.policy_id)
    where = _environment(held.run, environment_id)
    if evaluate(policy, held.step.side_effect_class, where).effect == Effect.ALLOW:
        return ApprovalResult(effect="allow")
    view, opened = _ask(ctx, held, policy, proposal, summary)
    return _answer(ctx, held, view, opened, park)


def _parked_before(
    ctx: Context, locked: LockedAttempt, lease_id: UUID, fencing_token: int, proposal_hash: str
) -> ApprovalResult:
    """Answer the same call again, whose answer was lost: it parked the attempt, and so it is told once more.

    Anything else without a lease is refused: `StaleFencingToken` or `LeaseOver`.
    """
    mine = Lease.objects.filter(
        pk=lease_id,
        attempt_id=locked.attempt.id,
        fencing_token=fencing_token,
        holder=ctx.actor.subject,
        state=LeaseState.RELEASED,
    )
    if proposal_hash and locked.attempt.state == AttemptState.PARKED and mine.exists():
        view = approval(locked.attempt.approval_id) if locked.attempt.approval_id else None
        if view is not None and view.proposal_hash == proposal_hash:
            return ApprovalResult(
                effect="require-approval",
                approval_id=view.id,
                version=view.version,
                expires_at=view.expires_at,
                parked=True,
            )
    raise why_not_held(ctx, locked, lease_id, fencing_token)


def _check_checkpoint(park: ParkRequest | None) -> None:
    if park is not None and len(canonical(park.checkpoint, "/park/checkpoint")) > MOST_CHECKPOINT:
        raise TooLarge(f"A checkpoint may have {MOST_CHECKPOINT} bytes.")


def _check_pins(run: Run, told: Pins) -> None:
    if told != Pins(run.release_id, run.snapshot_id, run.policy_revision):
        raise PinsMismatch("The release, the snapshot or the policy revision is not the run's.")


def _check_class(step: Step, word: str) -> None:
    """The node's class is the highest of the three, because a manifest with a higher tool is refused."""
    if word not in ActionClass.values:
        errors = [FieldError("/actionClass", f"One of {', '.join(ActionClass.values)}.")]
        raise InvalidInput("There is no such action class.", errors=errors)
    if ActionClass(word).rank > ActionClass(step.side_effect_class).rank:
        raise ClassAboveStep(
            f"The step is {step.side_effect_class}; a {word} action is above it.",
            extra={"subject": f"step:{step.id}", "stream": step.run_id},
        )


def _environment(run: Run, environment_id: UUID | None) -> str | None:
    """The slug of the run's environment; a worker cannot choose another."""
    if environment_id not in (None, run.environment_id):
        raise EnvironmentUnknown("The action's environment is not the run's.")
    return environment_slug(run)


def _ask(
    ctx: Context, held: HeldAttempt, policy: PolicyView, proposal: Any, summary: str
) -> tuple[ApprovalView, bool]:
    """The request that answers the question: one that stands, or a new one."""
    run, step, attempt = held.run, held.step, held.attempt
    at = now()
    draft = approvals.ApprovalDraft(
        subject_type=SubjectType.RUN,
        subject_id=step.id,
        run_id=run.id,
        step_id=step.id,
        attempt_id=attempt.id,
        action_class=step.side_effect_class,
        environment_id=run.environment_id,
        proposal=proposal,
        summary=summary,
        requested_by=run.requested_by,
        requester_person=run.requester_person,
        release_id=run.release_id,
        policy=policy,
        project_id=run.project_id,
        approvers=approvers_of(run, step),
        template_id=run.template_id,
    )
    view = approvals.open_request(ctx, draft)
    return view, view.requested_at >= at


def _answer(
    ctx: Context, held: HeldAttempt, view: ApprovalView, opened: bool, park: ParkRequest | None
) -> ApprovalResult:
    at = now()
    if held.attempt.approval_id != view.id:
        held.attempt.approval_id = view.id
        save(held.attempt)
    parked = False
    if opened and view.waiver_id is not None and held.run.state == RunState.RUNNING:
        approvals.start_validity(ctx, held.run.id)
    if view.is_pending:
        wait_for_approval(ctx, held.run, at)
        if park is not None:
            park_attempt(ctx, held, view.id, park.checkpoint, at)
            parked = True
    return ApprovalResult(
        effect="require-approval",
        opened=opened and view.is_pending,
        approval_id=view.id,
        version=view.version,
        expires_at=view.expires_at,
        decision=decision_note(view),
        parked=parked,
    )
