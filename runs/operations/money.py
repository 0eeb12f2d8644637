"""What a run may cost, and asking a person about it: before it begins, and at its limit."""

from decimal import Decimal
from typing import Any

import approvals.operations as approvals
from approvals.selectors import policy_revision
from approvals.states import ActionClass, SubjectType
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from runs.models import Run

CURRENCY = "USD"


def estimate(run: Run) -> Decimal:
    """Return what the run may cost at most, as it was pinned."""
    return Decimal(str(run.limits["maxCostUsd"]))


def money(amount: Decimal) -> dict[str, str]:
    """An amount as proposals hold it: a decimal text of six places, with its currency."""
    return {"amount": f"{amount:.6f}", "currency": CURRENCY}


@operation
def open_spend_request(
    ctx: Context,
    run: Run,
    amount: Decimal,
    summary: str,
    told: dict[str, Any],
    *,
    at_the_limit: bool = False,
    of_unknown_cost: bool = False,
) -> None:
    """Ask whether a locked run may cost `amount`; asked twice it is the same request.

    `told` is what stands in the proposal besides the run's own pins. `ApprovalRequested`. Raises
    `PolicyDenied` where the pinned policy denies spending.
    """
    proposal = {
        "kind": "spend-estimate",
        "amount": money(amount),
        "runId": str(run.id),
        "workflowId": run.workflow_id,
        "releaseHash": run.release_hash,
        "modelProfileId": run.model_profile_id,
    }
    draft = approvals.ApprovalDraft(
        subject_type=SubjectType.SPEND,
        subject_id=run.id,
        run_id=run.id,
        action_class=ActionClass.SPEND,
        environment_id=run.environment_id,
        proposal=proposal | told,
        summary=summary,
        requested_by=run.requested_by,
        requester_person=run.requester_person,
        release_id=run.release_id,
        policy=policy_revision(run.policy_id),
        project_id=run.project_id,
        spend=approvals.Spend(amount, at_the_limit, of_unknown_cost),
    )
    approvals.open_request(ctx, draft)
