"""The money of a run: past the policy's threshold a person decides before any of it is set aside."""

import usage.operations as usage
from approvals.selectors import evaluate, policy_revision, spend_threshold
from approvals.states import ActionClass, Effect
from factory.kernel.amounts import usd
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.recording import save
from runs.models import Run
from runs.operations.advancing import advance
from runs.operations.ending import fail_run
from runs.operations.money import estimate, money, open_spend_request
from runs.selectors.limits import environment_slug
from runs.states import FailureClass
from usage.states import ReservationState


def needs_a_decision(run: Run) -> bool:
    """Return whether the pinned policy wants a person's word on so much money first, or denies it."""
    if run.budget_reservation_id is not None:
        return False
    policy = policy_revision(run.policy_id)
    verdict = evaluate(policy, ActionClass.SPEND, environment_slug(run), amount=estimate(run))
    return verdict.effect is not Effect.ALLOW


@operation
def ask_for_money(ctx: Context, run: Run) -> None:
    """Open the spend request of an Accepted run; the run stays Accepted until somebody decides.

    Asked twice it is the same request. `ApprovalRequested`. Raises `PolicyDenied` where the policy denies it.
    """
    threshold, amount = spend_threshold(policy_revision(run.policy_id)), estimate(run)
    facts = {
        "threshold": None if threshold is None else money(threshold),
        "maxMinutes": run.limits["maxMinutes"],
    }
    summary = f"run {run.workflow_id} and spend up to {usd(amount)}"
    open_spend_request(ctx, run, amount, summary, facts)


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
