"""The money of a run: past the policy's threshold a person decides before any of it is set aside."""

from decimal import Decimal
from typing import Any

import approvals.operations as approvals
import usage.operations as usage
from approvals.selectors import policy_revision, spend_threshold
from approvals.states import ActionClass, SubjectType
from factory.commanding import operation
from factory.context import Context
from factory.recording import save
from runs.models import Run
from runs.operations.advancing import advance
from runs.operations.ending import fail_run
from runs.states import FailureClass
from usage.states import ReservationState

CURRENCY = "USD"


def estimate(run: Run) -> Decimal:
    """What the run may cost at most, as it was pinned."""
    return Decimal(str(run.limits["maxCostUsd"]))


def needs_a_decision(run: Run) -> bool:
    """Whether the pinned policy wants a person's word before this much money is set aside."""
    if run.budget_reservation_id is not None:
        return False
    threshold = spend_threshold(policy_revision(run.policy_id))
    return threshold is not None and estimate(run) > threshold


@operation
def ask_for_money(ctx: Context, run: Run) -> None:
    """Open the spend request of an Accepted run; the run stays Accepted until somebody decides.

    Asked twice it is the same request. `ApprovalRequested`. A policy that denies spend fails the run.
    """
    approvals.open_request(
        ctx,
        subject_type=SubjectType.SPEND,
        subject_id=run.id,
        run_id=run.id,
        step_id=None,
        attempt_id=None,
        action_class=ActionClass.SPEND,
        environment_id=run.environment_id,
        proposal=_proposal(run),
        summary=f"run {run.workflow_id} and spend up to {estimate(run):.2f} {CURRENCY}",
        requested_by=run.requested_by,
        requester_person=run.requester_person,
        release_id=run.release_id,
        policy=policy_revision(run.policy_id),
        project_id=run.project_id,
    )


def _proposal(run: Run) -> dict[str, Any]:
    threshold = spend_threshold(policy_revision(run.policy_id))
    return {
        "kind": "spend-estimate",
        "amount": _money(estimate(run)),
        "threshold": None if threshold is None else _money(threshold),
        "runId": str(run.id),
        "workflowId": run.workflow_id,
        "releaseHash": run.release_hash,
        "modelProfileId": run.model_profile_id,
        "maxMinutes": run.limits["maxMinutes"],
    }


def _money(amount: Decimal) -> dict[str, str]:
    return {"amount": f"{amount:.6f}", "currency": CURRENCY}


@operation
def set_aside_and_go(ctx: Context, run: Run) -> None:
    """Reserve an Accepted run's budget and make the steps that are ready, or fail it (class budget)."""
    reserved = usage.reserve(ctx, run_id=run.id, project_id=run.project_id, amount=estimate(run))
    if reserved.state != ReservationState.RESERVED:
        fail_run(ctx, run, cause="BudgetDenied", failure_class=FailureClass.BUDGET, reason=reserved.reason)
        return
    run.budget_reservation_id = reserved.id
    save(run)
    advance(ctx, run)
