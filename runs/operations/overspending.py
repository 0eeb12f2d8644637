"""A run that has used more than it may cost, or something of unknown cost: by its policy it fails, or a
person is asked."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from approvals.selectors import (
    PolicyVerdict,
    evaluate_at_the_limit,
    evaluate_unknown_usage,
    pending_of_run,
    policy_revision,
)
from approvals.states import Effect, SubjectType
from factory.kernel.amounts import usd
from factory.kernel.clock import now
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from runs.engine import node_of, nodes
from runs.models import Attempt, Run, Step
from runs.operations.ending import fail_run
from runs.operations.money import CURRENCY, estimate, money, open_spend_request
from runs.operations.moving import wait_for_approval
from runs.selectors.limits import (
    UNKNOWN_USAGE,
    environment_slug,
    limit_of,
    not_accepted,
    over_its_limit,
    why_money_stops,
)
from runs.states import AttemptState, FailureClass, StepState
from usage.selectors import UnknownCalls, usage_of_run

MOST_NAMED = 3


@operation
def stop_for_money(ctx: Context, run: Run) -> None:
    """Do what follows once the money of a locked, working run stops it and something of it was settled.

    Over its limit, or with usage of unknown cost to which nobody has said yes, it fails (class budget) by
    the pinned policy's `onLimit` or `unknownUsage`; or, if anything is left to dispatch, one request of class
    spend is opened and the run waits; who holds a lease goes on. `ApprovalRequested`. A policy that denies
    spend fails the run.
    """
    verdict = verdict_about_money(run)
    if over_its_limit(run):
        _stop_at_the_limit(ctx, run, verdict)
    else:
        _stop_at_the_unknown(ctx, run, not_accepted(run), verdict)


def verdict_about_money(run: Run) -> PolicyVerdict:
    """Return what the pinned policy says about a run whose money stops it: that a person is asked, or no."""
    judge = evaluate_at_the_limit if over_its_limit(run) else evaluate_unknown_usage
    return judge(policy_revision(run.policy_id), environment_slug(run))


def _stop_at_the_limit(ctx: Context, run: Run, verdict: PolicyVerdict) -> None:
    policy = policy_revision(run.policy_id)
    if verdict.effect is Effect.DENY:
        used = f"The run has used more than its limit of {limit_of(run):f} {CURRENCY}"
        run_out_of_money(ctx, run, f"{used}; policy {policy.revision} gives it no more ({verdict.rule}).")
    elif work_remains(run) and not _asked_already(run):
        _ask(ctx, run)


def _stop_at_the_unknown(
    ctx: Context, run: Run, calls: Sequence[UnknownCalls], verdict: PolicyVerdict
) -> None:
    policy = policy_revision(run.policy_id)
    if verdict.effect is Effect.DENY:
        stops = f"policy {policy.revision} lets no run go on with that ({verdict.rule})"
        run_out_of_money(ctx, run, f"Nobody knows what {_listed(calls)} cost; {stops}.")
    elif work_remains(run) and not _asked_already(run):
        _ask_about(ctx, run, calls)


@operation
def run_out_of_money(ctx: Context, run: Run, reason: str) -> None:
    """Fail a locked, working run, class budget."""
    fail_run(ctx, run, cause="BudgetExhausted", failure_class=FailureClass.BUDGET, reason=reason)


def needs_more_money(run: Run) -> bool:
    """Return whether a decision about money is of any use: it stops the run, and something is left to do."""
    return bool(why_money_stops(run)) and work_remains(run)


def work_remains(run: Run) -> bool:
    """Return whether anything of the run is still to be dispatched: what is held needs no more money."""
    states = dict(Step.objects.filter(run_id=run.id).values_list("node_key", "state"))
    return is_ahead(run, states) or some_are_parked(run)


def is_ahead(run: Run, states: Mapping[str, str]) -> bool:
    """Return whether a node is no step yet, or one is Pending, with the steps of a run in these states."""
    made = {node_of(key)[0] for key in states}
    unmade = any(node.key not in made for node in nodes(run.snapshot.content["workflow"]))
    return unmade or StepState.PENDING in states.values()


def some_are_parked(run: Run) -> bool:
    """Return whether an attempt of the run is to be leased again."""
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
    content = {"limit": money(limit_of(run)), "used": money(used)}
    summary = f"go on with run {run.workflow_id} and spend up to {usd(wanted)} in all"
    open_spend_request(ctx, run, wanted, summary, content, at_the_limit=True)
    wait_for_approval(ctx, run, now())


def _ask_about(ctx: Context, run: Run, calls: Sequence[UnknownCalls]) -> None:
    content: dict[str, Any] = {"limit": money(limit_of(run)), "used": money(usage_of_run(run.id).cost)}
    content[UNKNOWN_USAGE] = [_proposed(each) for each in calls]
    summary = f"go on with run {run.workflow_id}, though nobody knows what {_listed(calls)} cost"
    open_spend_request(ctx, run, limit_of(run), summary, content, of_unknown_cost=True)
    wait_for_approval(ctx, run, now())


def _proposed(calls: UnknownCalls) -> dict[str, Any]:
    """Return calls of unknown cost as a proposal holds them: flat, so that it is read as a table."""
    return {"provider": calls.provider, "name": calls.name, "calls": calls.calls, "used": calls.used}


def _listed(calls: Sequence[UnknownCalls]) -> str:
    """Return calls of unknown cost in a sentence's part; of many models the first."""
    lines = [f"{each.calls} call{'s' if each.calls != 1 else ''} of {each.called[:80]}" for each in calls]
    more = [f"those of {len(lines) - MOST_NAMED} others"] if len(lines) > MOST_NAMED else []
    return " and ".join([*lines[:MOST_NAMED], *more])
