"""What a reviewer is told about the run behind a question: figures, and what happened, not its journal."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

from approvals.selectors import ApprovalView, approvals_of_run
from approvals.states import ApprovalState
from approvals.subjects import ShareBar, Timeline, TimelineEntry
from factory.kernel.amounts import cost, number, usd
from factory.kernel.clock import now
from registry.selectors import release
from runs.models import Attempt, Run, Step
from runs.selectors.clocks import clock_of, why_it_stands
from runs.selectors.limits import limit_of
from runs.states import RUN_ACTIVE, STEP_ACTIVE, AttemptState, StepState
from usage.selectors import BudgetView, UsageView, budgets, set_aside_for, usage_of_attempts, usage_of_run

MOST_ENTRIES = 60
"""More than a reviewer reads; the newest stand there."""
TONES = {
    StepState.SUCCEEDED: "good",
    StepState.FAILED: "bad",
    StepState.RUNNING: "busy",
    StepState.DISPATCHED: "busy",
    AttemptState.UNCERTAIN: "doubt",
}
ANSWERED = {
    ApprovalState.APPROVED: ("approved by {}", "good"),
    ApprovalState.REJECTED: ("rejected by {}", "bad"),
    ApprovalState.EXPIRED: ("not answered in time", "bad"),
    ApprovalState.STALE: ("replaced by a newer proposal", "plain"),
    ApprovalState.CANCELLED: ("withdrawn", "plain"),
}


def timeline_of_run(run_id: UUID) -> Timeline | None:
    """The run so far: its pins, its cost and clock, and what happened in it, one line for each."""
    run = Run.objects.select_related("environment").filter(pk=run_id).first()
    if run is None:
        return None
    asset = release(run.release_id)
    return Timeline(
        title=f"The run so far: {run.workflow_id}",
        page="runs_run_change",
        key=run_id,
        facts=(
            ("State", str(run.state)),
            ("Release", f"{asset.asset}@{asset.version}"),
            ("Model profile", run.model_profile_id),
            ("Asked by", run.requested_by),
        ),
        meters=(_cost(run, usage_of_run(run_id)), *_clock(run)),
        moments=tuple(_entries(run)),
        cancel_page="runs_cancel" if run.state in RUN_ACTIVE else "",
    )


def _cost(run: Run, used: UsageView) -> ShareBar:
    limit = limit_of(run)
    calls = "one call" if used.uncertain == 1 else f"{used.uncertain} calls"
    without = f"; without {calls} of unknown cost" if used.uncertain else ""
    return ShareBar(
        "Cost so far", _percent(used.cost, limit), f"{number(used.cost)} of {usd(limit)}{without}"
    )


def _clock(run: Run) -> Iterator[ShareBar]:
    """Return how much of its time a run has used; none before it has begun."""
    clock, at = clock_of(run), now()
    if clock is None:
        return
    used = timedelta(minutes=run.limits["maxMinutes"]) - clock.left(run.finished_at or at)
    minutes = max(0, int(used.total_seconds() // 60))
    why = why_it_stands(clock, at) if run.state in RUN_ACTIVE else ""
    stands = f"; it {why}" if why else ""
    percent = _percent(Decimal(minutes), Decimal(run.limits["maxMinutes"]))
    yield ShareBar("Run clock", percent, f"{minutes} of {run.limits['maxMinutes']} min{stands}")


def _percent(part: Decimal, whole: Decimal) -> int:
    return min(100, int(100 * part / whole)) if whole else 100


def _entries(run: Run) -> Iterator[TimelineEntry]:
    rows = Step.objects.filter(run_id=run.id).defer("output").order_by("ordinal")
    steps = {step.id: step for step in rows}
    entries = sorted([*_of_steps(run, steps.values()), *_of_questions(run, steps)], key=lambda one: one.at)
    lines = list(_merged(entries))
    yield TimelineEntry(run.created_at, "The run", "was accepted and pinned")
    if len(lines) > MOST_ENTRIES:
        earlier = len(lines) - MOST_ENTRIES
        yield TimelineEntry(lines[earlier - 1].at, f"{earlier} things before", "stand on the page of the run")
    yield from lines[-MOST_ENTRIES:]


def _of_steps(run: Run, steps: Iterable[Step]) -> Iterator[TimelineEntry]:
    attempts: dict[UUID, list[Attempt]] = {}
    rows = Attempt.objects.filter(run_id=run.id).only("id", "step_id", "number", "state")
    for attempt in rows.order_by("number"):
        attempts.setdefault(attempt.step_id, []).append(attempt)
    known = usage_of_attempts(run.id)
    for step in steps:
        own = attempts.get(step.id, [])
        if step.state == StepState.PENDING or (step.is_human and step.finished_at is None):
            continue
        waits = bool(own) and own[-1].state == AttemptState.PARKED
        if step.state in STEP_ACTIVE and waits:
            continue
        uncertain = bool(own) and own[-1].state == AttemptState.UNCERTAIN
        became = AttemptState.UNCERTAIN if uncertain else StepState(step.state)
        yield TimelineEntry(
            at=step.finished_at or step.updated_at,
            what=step.node_key,
            became=str(became.value) + (f" at attempt {len(own)}" if len(own) > 1 else ""),
            tone=TONES.get(became, "plain"),
            note=_earlier(own) or ("An operator settles that." if uncertain else ""),
            quote=step.reason[:300] if step.state in (StepState.FAILED, StepState.SKIPPED) else "",
            aside=_spent(known, own),
        )


def _earlier(attempts: list[Attempt]) -> str:
    """Return what became of the attempts before the last one."""
    return ", ".join(f"attempt {one.number} {one.state}" for one in attempts[:-1])


def _spent(known: Mapping[UUID, UsageView], attempts: Iterable[Attempt]) -> str:
    used = [known[one.id] for one in attempts if one.id in known]
    total = sum((one.cost for one in used), Decimal(0))
    uncertain = sum(one.uncertain for one in used)
    if not total:
        return f"cost {cost(total, uncertain)}" if uncertain else ""
    return cost(total, uncertain)


def _of_questions(run: Run, steps: Mapping[UUID, Step]) -> Iterator[TimelineEntry]:
    rounds: dict[UUID | None, int] = {}
    for view in approvals_of_run(run.id):
        rounds[view.step_id] = rounds.get(view.step_id, 0) + 1
        step = steps.get(view.step_id) if view.step_id else None
        what = step.node_key if step else "The money of the run"
        which = f"proposal {rounds[view.step_id]} " if step and not step.is_human else ""
        if view.is_pending:
            parked = "The attempt is parked: no worker is held while you read." if view.attempt_id else ""
            yield TimelineEntry(view.requested_at, what, f"{which}waits for a decision", "wait", parked)
            continue
        became, tone = _answer(view)
        yield TimelineEntry(
            view.closed_at or view.requested_at, what, f"{which}{became}", tone, quote=view.reason
        )


def _answer(view: ApprovalView) -> tuple[str, str]:
    if view.sent_back:
        return f"sent back by {view.decided_by}", "bad"
    words, tone = ANSWERED[ApprovalState(view.state)]
    who = "a waiver" if view.waiver_id else view.decided_by
    return words.format(f"{who}, breaking the glass" if view.break_glass else who), tone


def _merged(moments: Iterable[TimelineEntry]) -> Iterator[TimelineEntry]:
    """Steps that came one after the other to the same plain end stand in one line."""
    last: TimelineEntry | None = None
    for moment in moments:
        same = last is not None and (last.became, last.tone) == (moment.became, moment.tone)
        plain = not (moment.note or moment.quote or moment.aside)
        if last is not None and same and plain and not (last.note or last.quote or last.aside):
            last = replace(moment, what=f"{last.what}, {moment.what}")
            continue
        if last is not None:
            yield last
        last = moment
    if last is not None:
        yield last


def asker_of(story: Timeline | None, step_id: UUID | None) -> Timeline | None:
    """The story with the name of the step that asks."""
    step = Step.objects.filter(pk=step_id).first() if story is not None and step_id else None
    return story if story is None or step is None else replace(story, asker=step.node_key)


def timeline_of_spend(run_id: UUID, wanted: Decimal) -> Timeline | None:
    """The run, and what would be left of each budget that pays for it if it may cost `wanted` in all."""
    told, run = timeline_of_run(run_id), Run.objects.filter(pk=run_id).first()
    if told is None or run is None:
        return None
    asked = max(wanted - (set_aside_for(run_id) or Decimal(0)), Decimal(0))
    return replace(told, bars=tuple(_bar(budget, asked) for budget in budgets(run.project_id)))


def _bar(budget: BudgetView, asked: Decimal) -> ShareBar:
    whose = "project" if budget.project_id else "tenant"
    taken = budget.amount - budget.available + asked
    percent = min(100, int(100 * taken / budget.amount)) if budget.amount else 100
    short = "" if asked <= budget.available else " It is not enough: the run would be denied."
    return ShareBar(
        label=f"The {whose}'s budget, {budget.period_start:%B %Y}",
        percent=percent,
        words=f"{number(budget.available)} of {usd(budget.amount)} are free; "
        f"this run asks for {number(asked)}.{short}",
    )
