"""What the page of a run says: read once, in one transaction, as plain values for its template."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.template.defaultfilters import pluralize

from factory.console.show import brief, span
from factory.kernel import clock
from factory.kernel.context import Context
from registry.selectors import release
from runs.admin.actions.rerun import may_run_again
from runs.admin.actions.settle import cards
from runs.admin.detail.charts.run import graph, states, tally, timeline
from runs.admin.detail.facts import AttemptFacts, Facts, read
from runs.admin.detail.tabs import tabs
from runs.admin.detail.waits import at_work, waits, what_next
from runs.commands.cancel_run import is_theirs_to_stop
from runs.models import CancellationIntent, Freeze, Run, Step
from runs.operations.money import estimate
from runs.selectors.clocks import clock_of, why_it_stands
from runs.selectors.limits import limit_of
from runs.selectors.reruns import family
from runs.selectors.uncertain import uncertain_attempts
from runs.states import RUN_ACTIVE, RUN_OPEN, Attention, RunState, StepState
from usage.selectors import UsageView, reservation_of


def run_page(ctx: Context, run: Run, tab: str) -> dict[str, Any]:
    """The values of the run's page for this person, with the part behind it that they chose."""
    facts, at = read(run), clock.now()
    waited = waits(ctx, facts, at)
    limit, drawn = limit_of(run), graph(facts, at)
    return {
        "run": run,
        "now": at,
        "facts": facts,
        "release": release(run.release_id),
        "usage": facts.usage,
        "reservation": reservation_of(run.id),
        "limit": limit,
        "raised": limit if limit > estimate(run) else None,
        "cost_percent": _percent(facts.usage.cost, limit),
        "took": brief(((run.finished_at or at) - run.created_at).total_seconds()),
        "clock": run_clock(facts, at),
        "waits": waited,
        "works": at_work(facts, at),
        "next": "" if any(one.stuck for one in waited) else what_next(facts),
        "sentence": sentence(facts, facts.usage),
        "graph": drawn,
        "tally": tally(drawn),
        "timeline": timeline(facts, at),
        "groups": groups(facts),
        "intent": CancellationIntent.objects.filter(run_id=run.id).first(),
        "looked_for": [s for s in facts.steps if s.attention not in ("", Attention.UNCERTAIN)],
        "doubts": cards(
            run, uncertain_attempts([s for s in facts.steps if s.attention == Attention.UNCERTAIN]), at
        ),
        "family": family(run.id),
        "may_run_again": may_run_again(ctx, run),
        "may_cancel": may_cancel(ctx, run),
        "freeze": Freeze.objects.filter(run_id=run.id, lifted_at__isnull=True).first(),
        "may_lift": "PlatformAdmin" in ctx.actor.roles,
        "may_settle": "Operator" in ctx.actor.roles,
        "sees_content": "payloads" in ctx.actor.grants,
        **tabs(ctx, facts, tab),
    }


def _percent(cost: Decimal, limit: Decimal) -> int:
    return min(100, round(100 * cost / limit)) if limit else 0


@dataclass(frozen=True, slots=True)
class RunClock:
    """Hold how long the run has worked, of how long it may, and how long it has waited for people meanwhile.

    `stands_still` says since when its clock does and why; `fails_at` is when it fails while the clock runs.
    """

    worked: str
    limit: str
    percent: int
    waited: str
    stands_still: str
    fails_at: datetime | None


def run_clock(facts: Facts, at: datetime) -> RunClock:
    """Return the clock that the time limit counts by, as the deadline is judged."""
    run, most = facts.run, 60 * facts.run.limits["maxMinutes"]
    clock, waited = clock_of(run), _spent(facts, RunState.WAITING, at)
    worked = most - clock.left(run.finished_at or at).total_seconds() if clock else 0.0
    standing = why_it_stands(clock, at) if run.state in RUN_ACTIVE else ""
    return RunClock(
        worked=brief(worked),
        limit=span(most),
        percent=min(100, max(0, round(100 * worked / most))),
        waited=brief(waited) if waited else "",
        stands_still=standing,
        fails_at=clock.due_at(at) if clock and run.state == RunState.RUNNING and not standing else None,
    )


def _spent(facts: Facts, state: str, at: datetime) -> float:
    spans = (one for one in states(facts) if one.state == state)
    return sum(((one.end or at) - one.start).total_seconds() for one in spans)


def may_cancel(ctx: Context, run: Run) -> bool:
    """Tell whether the button is offered; the command judges again."""
    return run.state in RUN_OPEN and is_theirs_to_stop(ctx, run)


def sentence(facts: Facts, used: UsageView) -> str:
    """Return where it stands, in one sentence."""
    done = sum(step.state == StepState.SUCCEEDED for step in facts.steps)
    skipped = sum(step.state == StepState.SKIPPED for step in facts.steps)
    whole = sum(max(1, len(each.steps)) for each in facts.standings) - skipped
    told = _how_far(done, whole, ended=facts.run.state not in RUN_ACTIVE)
    told += f" {skipped} {pluralize(skipped, 'was,were')} skipped." if skipped else ""
    if facts.run.state == RunState.FAILED:
        return f"{told} It failed ({facts.run.failure_class}): {facts.run.reason}"
    if facts.run.state == RunState.CANCELLED:
        return f"{told} It was cancelled: {facts.run.reason}"
    unknown = f" The cost of {used.uncertain} calls is not known." if used.uncertain else ""
    return told + unknown


def _how_far(done: int, whole: int, *, ended: bool) -> str:
    if whole == 1:
        return f"Its one step has {'succeeded' if done else 'not succeeded' + ('' if ended else ' yet')}."
    return f"{done} of {whole} steps {pluralize(done, 'has,have')} succeeded."


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of the table of steps: all the plain ones, or the instances of one node that fanned out."""

    title: str
    note: str
    tries: list[AttemptFacts]
    unstarted: list[Step]


def groups(facts: Facts) -> list[Group]:
    """The plain steps first; each fan-out by itself, for it may have a hundred instances."""
    plain = [step for each in facts.standings for step in each.steps if not each.instances]
    found = [_group(facts, "", "", plain)]
    for each in facts.standings:
        if each.instances:
            note = f"{each.done} of {len(each.instances)} {pluralize(each.done, 'has,have')} succeeded"
            found.append(_group(facts, each.node.key, note, each.instances))
    return found


def _group(facts: Facts, title: str, note: str, steps: Sequence[Step]) -> Group:
    tries = [(step, facts.tries(step)) for step in steps]
    unstarted = [step for step, own in tries if not own]
    return Group(title, note, [each for _, own in tries for each in own], unstarted)
