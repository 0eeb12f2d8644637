"""What the drawings of a run's page show: the state of each node, and who had what from when to when."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from approvals.selectors import ApprovalView
from factory.admin.show import span
from runs.admin.drawing import Graph, Told, draw_graph
from runs.admin.facts import Facts, Try
from runs.admin.lanes import Span, Timeline, draw_timeline
from runs.models import Run, Step
from runs.selectors.standing import Standing
from runs.states import RUN_ACTIVE, AttemptState, Attention

WAITS_FOR_PEOPLE = "Waits for approval"


def nodes_of(run: Run) -> list[Mapping[str, Any]]:
    """The nodes of the definition that the run was pinned to."""
    return list(run.snapshot.content["workflow"].get("nodes", []))


def graph(facts: Facts, at: datetime) -> Graph:
    """The workflow with the present state of each node."""
    begun = {each.node.key: _told(facts, each, at) for each in facts.standings if each.steps}
    return draw_graph(nodes_of(facts.run), begun)


def tally(drawn: Graph) -> str:
    """How many nodes are in each state, in words: 4 Succeeded, 1 Uncertain."""
    counts: dict[str, int] = {}
    for box in drawn.boxes:
        counts[box.state] = counts.get(box.state, 0) + 1
    return ", ".join(f"{count} {state}" for state, count in counts.items())


def _told(facts: Facts, standing: Standing, at: datetime) -> Told:
    """Of a node that fanned out, how many of its instances are done."""
    if standing.instances:
        return Told(standing.state, f"{standing.done} of {len(standing.instances)} done")
    step = standing.steps[0]
    tries = facts.tries(step)
    number = f"attempt {len(tries)} of {step.max_attempts}" if len(tries) > 1 else ""
    return Told(_state(facts, step), ", ".join(filter(None, (_remark(step, tries, at), number))))


def _state(facts: Facts, step: Step) -> str:
    """A step's state as people say it."""
    if step.attention == Attention.UNCERTAIN:
        return "Uncertain"
    if any(view.is_pending and view.step_id == step.id for view in facts.approvals):
        return WAITS_FOR_PEOPLE
    return str(step.state)


def _remark(step: Step, tries: list[Try], at: datetime) -> str:
    if step.attention == Attention.UNCERTAIN:
        return "settle it"
    if step.attention:
        return "look at it"
    if not tries:
        return ""
    until = tries[-1].attempt.settled_at or at
    return span((until - tries[0].attempt.dispatched_at).total_seconds())


def timeline(facts: Facts, at: datetime) -> Timeline:
    """The run's states, and each step's attempts and questions, on one axis."""
    run = facts.run
    lines = [("run", str(run.state), list(states(facts)))]
    for each in facts.standings:
        if each.steps:
            told = _told(facts, each, at)
            name = f"{told.state}, {told.note}" if each.instances else told.state
            spans = [one for step in each.steps for one in _step_spans(facts, step, bool(each.instances))]
            lines.append((each.node.key, name, spans))
    return draw_timeline(lines, run.created_at, run.finished_at or at)


def states(facts: Facts) -> Iterator[Span]:
    """The states that the run was in while it was open, from its journal."""
    ends = [entry.occurred_at for entry in facts.moves[1:]]
    for entry, end in zip(facts.moves, [*ends, None], strict=True):
        if entry.to_state in RUN_ACTIVE:
            yield Span("run", entry.to_state, entry.occurred_at, end)


def _step_spans(facts: Facts, step: Step, one_of_many: bool = False) -> Iterator[Span]:
    """Attempts with their leases, and questions. Of one of many only the attempts: they share a line."""
    for each in facts.tries(step):
        name = f"attempt {each.attempt.number}"
        yield from _attempt_spans(each, f"{step.node_key} {name}" if one_of_many else name)
        if each.attempt.state == AttemptState.UNCERTAIN and step.attention == Attention.UNCERTAIN:
            yield Span(name, "Uncertain", each.attempt.settled_at or each.attempt.dispatched_at, None, "tail")
        if not one_of_many:
            for lease in each.leases:
                label = f"lease of {lease.worker_name}"
                yield Span(label, str(lease.state), lease.offered_at, lease.closed_at, "lease")
    if not one_of_many:
        for view in facts.approvals:
            if view.step_id == step.id:
                yield from _question_spans(view)


def _attempt_spans(each: Try, name: str) -> Iterator[Span]:
    """An attempt as the time in which somebody held it, and that in which it was parked."""
    attempt = each.attempt
    ended = attempt.settled_at
    open_now = attempt.state in (AttemptState.OPEN, AttemptState.PARKED)
    state = "Running" if open_now else str(attempt.state)
    begun: datetime | None = attempt.dispatched_at
    for lease, follower in zip(each.leases, [*each.leases[1:], None], strict=True):
        until = lease.closed_at
        yield Span(name, state, begun or lease.offered_at, until)
        begun = follower.offered_at if follower else ended
        if until is not None and (begun is None or begun > until):
            yield Span(name, "Parked", until, begun, "parked")


def _question_spans(view: ApprovalView) -> Iterator[Span]:
    yield Span("question", view.state, view.requested_at, view.closed_at, "question")
    if view.authorization is not None:
        used = view.authorization.authorized_at
        yield Span("approval used", "Approved", used, used, "use")
