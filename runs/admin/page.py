"""What the page of a run says: read once, in one transaction, as plain values for its template."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Any
from uuid import UUID

from django.urls import reverse

from approvals.selectors import ApprovalView, approvals_of_run
from factory import clock
from factory.admin.show import span
from factory.context import Context
from factory.models import AuditEntry, JournalEntry, OutboxEvent
from registry.selectors import release
from runs.admin.again import may_run_again
from runs.admin.drawing import Graph, Span, Timeline, draw_graph, draw_timeline
from runs.commands.cancel_run import MAY_CANCEL
from runs.models import Artifact, Attempt, CancellationIntent, Freeze, Lease, Receipt, Run, Step
from runs.operations.money import estimate
from runs.operations.timing import grace
from runs.selectors.doubts import doubts
from runs.selectors.limits import limit_of
from runs.selectors.reasons import Reasons
from runs.selectors.reruns import family
from runs.selectors.runs import attempts_of
from runs.selectors.standing import Standing, standings
from runs.states import RUN_ACTIVE, AttemptState, Attention, LeaseState, RunState, StepState
from usage.selectors import UsageView, reservation_of, usage_of_run

SHOWN_ENTRIES = 200


@dataclass(frozen=True, slots=True)
class Waits:
    """Something that the run waits for: what, in words, and where it is put right."""

    state: str
    title: str
    detail: str
    url: str = ""
    action: str = ""


@dataclass(frozen=True, slots=True)
class Try:
    """An attempt with its leases and receipts."""

    step: Step
    attempt: Attempt
    leases: Sequence[Lease]
    receipts: Sequence[Receipt]
    artifacts: Sequence[Artifact]


@dataclass(frozen=True)
class Facts:
    """The rows of one run."""

    run: Run
    steps: list[Step]
    attempts: list[Attempt]
    leases: list[Lease]
    receipts: list[Receipt]
    artifacts: list[Artifact]
    approvals: list[ApprovalView]
    journal: list[JournalEntry]

    @cached_property
    def standings(self) -> list[Standing]:
        """The nodes, each with its steps."""
        return standings(self.run.snapshot.content["workflow"], self.steps)

    @cached_property
    def _tries(self) -> dict[UUID, list[Try]]:
        leases, receipts = _grouped(self.leases), _grouped(self.receipts)
        made = _grouped(self.artifacts)
        steps = {step.id: step for step in self.steps}
        found: dict[UUID, list[Try]] = {}
        for each in self.attempts:
            own = [rows.get(each.id, ()) for rows in (leases, receipts, made)]
            one = Try(steps[each.step_id], each, *own)
            found.setdefault(each.step_id, []).append(one)
        return found

    def tries(self, step: Step) -> list[Try]:
        """The attempts at a step, oldest first."""
        return self._tries.get(step.id, [])


def _grouped(rows: Sequence[Any]) -> dict[UUID, list[Any]]:
    found: dict[UUID, list[Any]] = {}
    for row in rows:
        found.setdefault(row.attempt_id, []).append(row)
    return found


def read(run: Run) -> Facts:
    """Everything about a run that its page shows."""
    return Facts(
        run=run,
        steps=list(Step.objects.filter(run_id=run.id).order_by("ordinal")),
        attempts=list(Attempt.objects.filter(run_id=run.id).order_by("number", "id")),
        leases=list(Lease.objects.filter(run_id=run.id).order_by("fencing_token")),
        receipts=list(Receipt.objects.filter(run_id=run.id).order_by("occurred_at", "id")),
        artifacts=list(Artifact.objects.filter(run_id=run.id).order_by("id")),
        approvals=approvals_of_run(run.id),
        journal=list(JournalEntry.objects.filter(stream_id=run.id).order_by("sequence")),
    )


def run_page(ctx: Context, run: Run) -> dict[str, Any]:
    """The values of the run's page for this person."""
    facts, at = read(run), clock.now()
    used, reserved = usage_of_run(run.id), reservation_of(run.id)
    limit = limit_of(run)
    return {
        "run": run,
        "now": at,
        "facts": facts,
        "release": release(run.release_id),
        "usage": used,
        "reservation": reserved,
        "limit": limit,
        "raised": limit if limit > estimate(run) else None,
        "cost_percent": _percent(used.cost, limit),
        "took": span(((run.finished_at or at) - run.created_at).total_seconds()),
        "waits": list(waits(facts, at)),
        "sentence": sentence(facts, used),
        "graph": graph(facts),
        "timeline": timeline(facts, at),
        "groups": groups(facts),
        "entries": facts.journal[-SHOWN_ENTRIES:],
        "events": list(
            OutboxEvent.objects.filter(run_id=run.id).order_by("sequence", "position")[:SHOWN_ENTRIES]
        ),
        "audits": list(AuditEntry.objects.filter(subject__contains=str(run.id)).order_by("occurred_at")),
        "intent": CancellationIntent.objects.filter(run_id=run.id).first(),
        "looked_for": [s for s in facts.steps if s.attention not in ("", Attention.UNCERTAIN)],
        "doubts": doubts([s for s in facts.steps if s.attention == Attention.UNCERTAIN]),
        "family": family(run.id),
        "may_run_again": may_run_again(ctx, run),
        "may_cancel": may_cancel(ctx, run),
        "freeze": Freeze.objects.filter(run_id=run.id, lifted_at__isnull=True).first(),
        "may_lift": "PlatformAdmin" in ctx.actor.roles,
        "may_settle": "Operator" in ctx.actor.roles,
        "sees_content": "payloads" in ctx.actor.grants,
    }


def _percent(cost: Decimal, limit: Decimal) -> int:
    return min(100, round(100 * cost / limit)) if limit else 0


def may_cancel(ctx: Context, run: Run) -> bool:
    """Whether the button is offered; the command judges again."""
    own = {ctx.actor.subject, ctx.actor.person} & {run.requested_by, run.requester_person}
    return run.state in RUN_ACTIVE and bool(own or ctx.actor.roles & MAY_CANCEL)


def sentence(facts: Facts, used: UsageView) -> str:
    """Where it stands, in one sentence."""
    done = sum(step.state == StepState.SUCCEEDED for step in facts.steps)
    skipped = sum(step.state == StepState.SKIPPED for step in facts.steps)
    whole = sum(max(1, len(each.steps)) for each in facts.standings) - skipped
    told = f"{done} of {whole} steps have succeeded."
    told += f" {skipped} {'was' if skipped == 1 else 'were'} skipped." if skipped else ""
    if facts.run.state == RunState.FAILED:
        return f"{told} It failed ({facts.run.failure_class}): {facts.run.reason}"
    if facts.run.state == RunState.CANCELLED:
        return f"{told} It was cancelled: {facts.run.reason}"
    unknown = f" The cost of {used.uncertain} calls is not known." if used.uncertain else ""
    return told + unknown


def waits(facts: Facts, at: datetime) -> list[Waits]:
    """What has to happen before the run goes on, and who makes it happen."""
    run = facts.run
    if run.state not in RUN_ACTIVE:
        return []
    found = [_question(view, at) for view in facts.approvals if view.is_pending]
    found += [_doubt(step) for step in facts.steps if step.attention == Attention.UNCERTAIN]
    if run.state == RunState.CANCELLING:
        found += [_interruption(lease, at) for lease in facts.leases if lease.is_current]
    if not found:
        found += _idle(facts, at)
    return found


def _idle(facts: Facts, at: datetime) -> list[Waits]:
    """The steps that nobody works at, each with the reason that the API tells too."""
    reasons = Reasons(facts.run, facts.steps, attempts_of(facts.run.id))
    return [_worker(step, at, why) for step in facts.steps if (why := reasons.of_step(step))]


def _question(view: ApprovalView, at: datetime) -> Waits:
    left = (view.expires_at - at).total_seconds()
    asked = view.summary if view.summary.endswith("?") else f"{view.summary}."
    return Waits(
        "Pending",
        "A reviewer decides",
        f"{asked} Asked {span((at - view.requested_at).total_seconds())} ago; "
        + (f"in {span(left)} it expires and the run fails." if left > 0 else "its time is over."),
        reverse("admin:approvals_approvalrequest_change", args=[view.id]),
        "Open the decision",
    )


def _doubt(step: Step) -> Waits:
    return Waits(
        "Uncertain",
        f"An Operator settles {step.node_key}",
        "Its worker fell silent after it had taken the authorization: the effect may have happened. "
        "Nobody repeats it by themselves.",
        "#settle",
        "Settle it",
    )


def _interruption(lease: Lease, at: datetime) -> Waits:
    left = (lease.expires_at + grace() - at).total_seconds()
    until = f"in {span(left)} it is waited for no longer" if left > 0 else "it is waited for no longer"
    return Waits(
        "Cancelling",
        f"{lease.worker_name} stops",
        f"It is told to at its next renewal. If it does not answer, {until}: at "
        f"{lease.expires_at + grace():%H:%M:%S} UTC its attempt becomes Uncertain.",
    )


def _worker(step: Step, at: datetime, why: str) -> Waits:
    due = step.next_dispatch_at
    if due is not None and due > at:
        return Waits(
            "Pending", f"{step.node_key} waits to be tried again", f"In {span((due - at).total_seconds())}."
        )
    title = f"{step.node_key} waits for a worker"
    return Waits(str(step.state), title, f"{why} As soon as that changes, it starts.")


def nodes_of(run: Run) -> list[dict[str, Any]]:
    """The nodes of the definition that the run was pinned to."""
    content: dict[str, Any] = run.snapshot.content
    definition = content.get("workflow") or content.get("definition") or {}
    return list(definition.get("nodes", []))


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of the table of steps: all the plain ones, or the instances of one node that fanned out."""

    title: str
    note: str
    tries: list[Try]
    unstarted: list[Step]


def groups(facts: Facts) -> list[Group]:
    """The plain steps first; each fan-out by itself, for it may have a hundred instances."""
    plain = [step for each in facts.standings for step in each.steps if not each.instances]
    found = [_group(facts, "", "", plain)]
    for each in facts.standings:
        if each.instances:
            note = f"{each.done} of {len(each.instances)} have succeeded"
            found.append(_group(facts, each.node.key, note, each.instances))
    return found


def _group(facts: Facts, title: str, note: str, steps: Sequence[Step]) -> Group:
    tries = [(step, facts.tries(step)) for step in steps]
    unstarted = [step for step, own in tries if not own]
    return Group(title, note, [each for _, own in tries for each in own], unstarted)


def graph(facts: Facts) -> Graph:
    """The workflow with the present state of each node."""
    begun = {each.node.key: _standing(facts, each) for each in facts.standings if each.steps}
    return draw_graph(nodes_of(facts.run), begun)


def _standing(facts: Facts, standing: Standing) -> tuple[str, str]:
    """The state of a node and a note; of one that fanned out, how many of its instances are done."""
    if not standing.instances:
        return _node_state(facts, standing.steps[0])
    return standing.state, f"{standing.done} of {len(standing.instances)}"


def _node_state(facts: Facts, step: Step) -> tuple[str, str]:
    """A node's state as people say it, and what is remarkable about it."""
    if step.attention == Attention.UNCERTAIN:
        return "Uncertain", "settle it"
    if any(view.is_pending and view.step_id == step.id for view in facts.approvals):
        return "Waits for approval", ""
    tries = len(facts.tries(step))
    return str(step.state), f"attempt {tries} of {step.max_attempts}" if tries > 1 else str(step.attention)


def timeline(facts: Facts, at: datetime) -> Timeline:
    """The run's states, and each step's attempts and questions, on one axis."""
    run = facts.run
    lines = [("run", str(run.state), _states(facts.journal, run.id))]
    for each in facts.standings:
        spans = [span for step in each.steps for span in _step_spans(facts, step, bool(each.instances))]
        if spans or each.steps:
            lines.append((each.node.key, " ".join(_standing(facts, each)), spans))
    return draw_timeline(lines, run.created_at, run.finished_at or at)


def _states(journal: Sequence[JournalEntry], entity_id: UUID) -> list[Span]:
    moves = [entry for entry in journal if entry.entity_id == entity_id]
    ends = [entry.occurred_at for entry in moves[1:]]
    spans = zip(moves, [*ends, None], strict=True)
    return [Span("run", e.to_state, e.occurred_at, end) for e, end in spans if e.to_state in RUN_ACTIVE]


def _step_spans(facts: Facts, step: Step, one_of_many: bool = False) -> list[Span]:
    """Attempts with their leases, and questions. Of one of many only the attempts: they share a line."""
    spans = []
    for each in facts.tries(step):
        attempt = each.attempt
        state = "Running" if attempt.state == AttemptState.OPEN else str(attempt.state)
        name = f"{step.node_key} attempt {attempt.number}" if one_of_many else f"attempt {attempt.number}"
        spans.append(Span(name, state, attempt.dispatched_at, attempt.settled_at))
        if one_of_many:
            continue
        spans += [
            Span(f"lease {lease.worker_name}", str(lease.state), lease.offered_at, lease.closed_at, "lease")
            for lease in each.leases
        ]
    spans += [
        Span("approval", view.state, view.requested_at, view.closed_at, "question")
        for view in facts.approvals
        if view.step_id == step.id
    ]
    return spans


def open_leases(facts: Facts) -> list[Lease]:
    """Leases that somebody has now."""
    return [lease for lease in facts.leases if lease.state in (LeaseState.OFFERED, LeaseState.HELD)]
