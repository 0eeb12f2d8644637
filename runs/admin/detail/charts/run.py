"""What the drawings of a run's page show: the state of each node, and who had what from when to when."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from approvals.selectors import ApprovalView
from factory.console.show import brief
from runs.admin.detail.charts.graph import Graph, NodeLabel, draw_graph
from runs.admin.detail.charts.timeline import THINNEST, Span, TimelineChart, draw_timeline
from runs.admin.detail.facts import WAITS_FOR_A_WORKER, AttemptFacts, Facts
from runs.models import Run, Step
from runs.selectors.node_progress import NodeProgress
from runs.states import RUN_ACTIVE, AttemptState, Attention, PageState, RunState, StepState

WAITS_FOR_PEOPLE = str(PageState.WAITS_FOR_PEOPLE)


def nodes_of(run: Run) -> list[Mapping[str, Any]]:
    """The nodes of the definition that the run was pinned to."""
    return list(run.snapshot.content["workflow"].get("nodes", []))


def graph(facts: Facts, at: datetime) -> Graph:
    """The workflow with the present state of each node."""
    begun = {each.node.key: _told(facts, each, at) for each in facts.standings if each.steps}
    return draw_graph(nodes_of(facts.run), begun)


def tally(drawn: Graph) -> str:
    """Return how many nodes are in each state, in words: 4 Succeeded, 1 step waits for a worker."""
    counts: dict[str, int] = {}
    for box in drawn.boxes:
        counts[box.state] = counts.get(box.state, 0) + 1
    return ", ".join(_counted(state, count) for state, count in counts.items())


def _counted(state: str, count: int) -> str:
    """A state's name by its number; what is told as a sentence stays one."""
    waits, found, what = state.partition("Waits for ")
    if waits or not found:
        return f"{count} {state}"
    return f"1 step waits for {what}" if count == 1 else f"{count} steps wait for {what}"


def _told(facts: Facts, standing: NodeProgress, at: datetime) -> NodeLabel:
    """Of a node that fanned out, how many of its instances are done."""
    if standing.instances:
        return NodeLabel(standing.state, f"{standing.done} of {len(standing.instances)} done")
    step = standing.steps[0]
    tries = facts.tries(step)
    used = max(len(tries), sum(lease.used_up for each in tries for lease in each.leases))
    number = f"attempt {used} of {step.max_attempts}" if used > 1 else ""
    return NodeLabel(_state(facts, step), ", ".join(filter(None, (_remark(facts, step, tries, at), number))))


def _state(facts: Facts, step: Step) -> str:
    """A step's state as people say it."""
    if step.attention == Attention.UNCERTAIN:
        return "Uncertain"
    if any(view.is_pending and view.step_id == step.id for view in facts.approvals):
        return WAITS_FOR_PEOPLE
    return WAITS_FOR_A_WORKER if facts.waits_for_a_worker(step) else str(step.state)


def _remark(facts: Facts, step: Step, tries: list[AttemptFacts], at: datetime) -> str:
    if step.attention == Attention.UNCERTAIN:
        return "settle it"
    if step.attention:
        return "look at it"
    if not tries:
        return ""
    begun, until = tries[0].attempt.dispatched_at, tries[-1].attempt.settled_at or at
    if facts.waits_for_a_worker(step) and tries[-1].leases:
        newest = tries[-1].leases[-1]
        begun = newest.closed_at or newest.offered_at
    return brief((until - begun).total_seconds())


def timeline(facts: Facts, at: datetime) -> TimelineChart:
    """The run's states, and each step's attempts and questions, on one axis."""
    run = facts.run
    start, end = run.created_at, run.finished_at or at
    least = (end - start) * THINNEST / 100
    lines = [("run", str(run.state), list(_run_spans(facts, end, least)))]
    for each in facts.standings:
        if each.steps:
            told = _told(facts, each, at)
            name = f"{told.state}, {told.note}" if each.instances else told.state
            many = bool(each.instances)
            spans = [one for step in each.steps for one in _step_spans(facts, step, least, many)]
            lines.append((each.node.key, name, spans))
    return draw_timeline(lines, start, end)


def _run_spans(facts: Facts, end: datetime, least: timedelta) -> Iterator[Span]:
    """The run's states; the time in which it was to go on as that with, and that without, a worker at it."""
    held = sorted((one.acquired_at, one.closed_at or end) for one in facts.leases if one.acquired_at)
    for each in states(facts):
        if each.state in (RunState.ACCEPTED, RunState.RUNNING):
            yield from _with_and_without(held, each.start, each.end or end, least)
        else:
            yield each


def _with_and_without(
    held: Sequence[tuple[datetime, datetime]], at: datetime, end: datetime, least: timedelta
) -> Iterator[Span]:
    """A gap that is too short to be seen counts as work: a hundred of them would hide it."""
    for began, left in held:
        if left <= at or began >= end:
            continue
        if began - at > least:
            yield Span("run", "Waiting", at, began)
            at = began
        yield Span("run", str(RunState.RUNNING), at, min(left, end))
        at = min(left, end)
    if end - at > least:
        yield Span("run", "Waiting", at, end)


def states(facts: Facts) -> Iterator[Span]:
    """The states that the run was in while it was open, from its journal."""
    ends = [entry.occurred_at for entry in facts.moves[1:]]
    for entry, end in zip(facts.moves, [*ends, None], strict=True):
        if entry.to_state in RUN_ACTIVE:
            yield Span("run", entry.to_state, entry.occurred_at, end)


def _step_spans(facts: Facts, step: Step, least: timedelta, one_of_many: bool) -> Iterator[Span]:
    """Attempts with their leases, and questions. Of one of many only the attempts: they share a line."""
    if not one_of_many:
        yield from _before_the_first(facts, step, least)
    for each in facts.tries(step):
        name = f"attempt {each.attempt.number}"
        label = f"{step.node_key} {name}" if one_of_many else name
        yield from _attempt_spans(each, label, least)
        if each.attempt.state == AttemptState.UNCERTAIN and step.attention == Attention.UNCERTAIN:
            yield Span(name, "Uncertain", each.attempt.settled_at or each.attempt.dispatched_at, None, "tail")
        if not one_of_many:
            for lease in each.leases:
                label = f"lease of {lease.worker_name}"
                until = lease.closed_at or lease.expires_at
                yield Span(label, str(lease.state), lease.offered_at, until, "lease")
    if not one_of_many:
        for view in facts.approvals:
            if view.step_id == step.id:
                yield from _question_spans(view)


def _before_the_first(facts: Facts, step: Step, least: timedelta) -> Iterator[Span]:
    """The time from when a worker could have begun with a step until it was dispatched to one."""
    if step.is_human or step.state == StepState.SKIPPED:
        return
    tries = facts.tries(step)
    until = tries[0].attempt.dispatched_at if tries else step.finished_at
    if until is None or until - step.created_at > least:
        yield Span("attempt 1", WAITS_FOR_A_WORKER, step.created_at, until)


def _attempt_spans(each: AttemptFacts, name: str, least: timedelta) -> Iterator[Span]:
    """An attempt as the times in which it was offered, somebody held it, and it was parked."""
    attempt = each.attempt
    ended = attempt.settled_at
    open_now = attempt.state in (AttemptState.OPEN, AttemptState.PARKED)
    state = "Running" if open_now else str(attempt.state)
    begun: datetime | None = attempt.dispatched_at
    for lease, follower in zip(each.leases, [*each.leases[1:], None], strict=True):
        until = lease.closed_at
        since, taken = begun or lease.offered_at, lease.acquired_at
        if taken is None or taken - since > least:
            yield Span(name, WAITS_FOR_A_WORKER, since, taken or until)
            since = taken or since
        if taken is not None:
            yield Span(name, state, since, until)
        begun = follower.offered_at if follower else ended
        if until is not None and (begun is None or begun > until):
            yield Span(name, "Parked", until, begun, "parked")


def _question_spans(view: ApprovalView) -> Iterator[Span]:
    yield Span("question", view.state, view.requested_at, view.closed_at, "question")
    if view.authorization is not None:
        used = view.authorization.authorized_at
        yield Span("approval used", "Approved", used, used, "use")
