"""A run that has used more than it may cost: by its policy it fails, or a person is asked for more."""

from decimal import Decimal

from approvals.selectors import evaluate_at_the_limit, pending_of_run, policy_revision
from approvals.states import Effect, SubjectType
from factory.amounts import usd
from factory.clock import now
from factory.commanding import operation
from factory.context import Context
from runs.engine import node_of, nodes
from runs.models import Attempt, Run, Step
from runs.operations.ending import fail_run
from runs.operations.money import CURRENCY, estimate, money, open_spend_request, place_of
from runs.operations.moving import wait_for_approval
from runs.selectors.limits import limit_of, over_its_limit
from runs.states import AttemptState, FailureClass, StepState
from usage.selectors import usage_of_run


@operation
def stop_at_the_limit(ctx: Context, run: Run) -> None:
    """What follows once a locked, working run is over its limit and something of it was settled.

    By the pinned policy's `onLimit` it fails (class budget), or, if anything is left to dispatch, one
    request of class spend is opened for a higher limit and the run waits; who holds a lease goes on.
    `ApprovalRequested`. A policy that denies spend fails the run.
    """
    policy = policy_revision(run.policy_id)
    verdict = evaluate_at_the_limit(policy, place_of(run))
    if verdict.effect is Effect.DENY:
        used = f"The run has used more than its limit of {limit_of(run):f} {CURRENCY}"
        run_out_of_money(ctx, run, f"{used}; policy {policy.revision} gives it no more ({verdict.rule}).")
    elif work_remains(run) and not _asked_already(run):
        _ask(ctx, run)


@operation
def run_out_of_money(ctx: Context, run: Run, reason: str) -> None:
    """Fail a locked, working run, class budget."""
    fail_run(ctx, run, cause="BudgetExhausted", failure_class=FailureClass.BUDGET, reason=reason)


def needs_more_money(run: Run) -> bool:
    """Return whether more money is of any use: something of a run over its limit is to be dispatched."""
    return over_its_limit(run) and work_remains(run)


def work_remains(run: Run) -> bool:
    """Whether anything of the run is still to be dispatched: what holders are at needs no more money."""
    states = dict(Step.objects.filter(run_id=run.id).values_list("node_key", "state"))
    made = {node_of(key)[0] for key in states}
    if StepState.PENDING in states.values():
        return True
    if any(node.key not in made for node in nodes(run.snapshot.content["workflow"])):
        return True
    return bool(Attempt.objects.filter(run_id=run.id, state=AttemptState.PARKED).exists())


def higher_limit(run: Run, used: Decimal) -> Decimal:
    """The next multiple of the pinned limit that is above what was used."""
    pinned = estimate(run)
    return max((used // pinned + 1) * pinned, limit_of(run) + pinned)


def _asked_already(run: Run) -> bool:
    return any(view.subject_type == SubjectType.SPEND for view in pending_of_run(run.id))


def _ask(ctx: Context, run: Run) -> None:
    used = usage_of_run(run.id).cost
    wanted = higher_limit(run, used)
    told = {"limit": money(limit_of(run)), "used": money(used)}
    summary = f"go on with run {run.workflow_id} and spend up to {usd(wanted)} in all"
    open_spend_request(ctx, run, wanted, summary, told, at_the_limit=True)
    wait_for_approval(ctx, run, now())
