"""What a run is doing and what it waits for, each in words, with who puts it right and when it ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from uuid import UUID

from django.template.defaultfilters import pluralize
from django.urls import reverse

from approvals.selectors import (
    ApprovalView,
    Electorate,
    Judged,
    Right,
    right_to_decide,
    voted_already,
    votes_judged_of,
)
from approvals.states import ApprovalState
from approvals.subjects import why_unanswerable
from factory.console.show import span
from factory.kernel.context import Context
from factory.kernel.errors import Forbidden
from runs.admin.actions.settle import REFUSED
from runs.admin.detail.facts import WAITS_FOR_A_WORKER, Facts
from runs.models import Lease, Run, Step
from runs.operations.timing import grace
from runs.selectors.reasons import Reasons
from runs.selectors.runs import attempts_of
from runs.states import RUN_ACTIVE, Attention, LeaseState, RunState, StepState

MOST_AT_WORK = 6


@dataclass(frozen=True, slots=True)
class Waits:
    """Something that the run waits for: what, in words, and where it is put right.

    `stuck`: no answer that it asks for lets the run go on, so that it is only to be read.
    """

    state: str
    title: str
    detail: str
    url: str = ""
    action: str = ""
    stuck: bool = False
    is_theirs: bool = True
    """Whether the reader is the one who acts, or one of them: then the way there is a button."""


@dataclass(frozen=True, slots=True)
class Works:
    """A step that somebody works at: who, since when, and until when they have it."""

    step: str
    worker: str
    detail: str


def waits(ctx: Context, facts: Facts, at: datetime) -> list[Waits]:
    """Return what has to happen before the run goes on, and who makes it happen."""
    run = facts.run
    if run.state not in RUN_ACTIVE:
        return []
    asked = [view for view in facts.approvals if view.is_pending]
    answers = Answers(ctx, asked)
    found = [_question(answers, facts, view, at) for view in asked]
    found += [_doubt(facts.run, step) for step in facts.steps if step.attention == Attention.UNCERTAIN]
    if run.state == RunState.CANCELLING:
        found += [_interruption(lease, at) for lease in facts.leases if lease.is_current]
    if not found:
        found += _idle(facts, at)
    return found


def at_work(facts: Facts, at: datetime) -> list[Works]:
    """The steps that a worker holds now, the longest held first."""
    if facts.run.state not in RUN_ACTIVE or facts.run.state == RunState.CANCELLING:
        return []
    steps = {step.id: step for step in facts.steps}
    held = [lease for lease in facts.leases if lease.state == LeaseState.HELD]
    return [_works(steps[lease.step_id], lease, at) for lease in held[:MOST_AT_WORK]]


def _works(step: Step, lease: Lease, at: datetime) -> Works:
    since = span((at - (lease.acquired_at or lease.offered_at)).total_seconds())
    left = (lease.expires_at - at).total_seconds()
    until = (
        f"its lease ends in {span(left)} unless it renews it"
        if left > 0
        else f"its lease has ended; in {span((lease.expires_at + grace() - at).total_seconds())} it is let go"
    )
    return Works(step.node_key, lease.worker_name, f"for {since}; {until}.")


def what_next(facts: Facts) -> str:
    """Return what comes after that which is done now, in one sentence; empty when nothing does."""
    if facts.run.state not in RUN_ACTIVE:
        return ""
    if facts.run.state == RunState.CANCELLING:
        return "Next: as soon as every holder has stopped, the run is Cancelled."
    if any(step.attention == Attention.UNCERTAIN for step in facts.steps):
        return "Next depends on what the Operator says: what follows stands with each answer."
    over = {each.node.key for each in facts.standings if each.steps and not _open(each.steps)}
    later = [each.node.key for each in facts.standings if not each.steps and each.node.key not in over]
    if later:
        more = f" and {len(later) - 3} more" if len(later) > 3 else ""
        return f"Next: {', '.join(later[:3])}{more}."
    asks = [step.node_key for step in facts.steps if _open((step,)) and _asks_first(facts, step)]
    if asks:
        return f"Next: {', '.join(asks[:3])} {pluralize(len(asks), 'asks,ask')} before anything is done."
    return "Next: the run is Completed, with its output."


def _asks_first(facts: Facts, step: Step) -> bool:
    """Tell whether a step has still to ask: nothing of it is approved, and no question of it is open."""
    states = {view.state for view in facts.approvals if view.step_id == step.id}
    return (
        step.gated
        and not step.is_human
        and states.isdisjoint({ApprovalState.PENDING, ApprovalState.APPROVED})
    )


def _open(steps: tuple[Step, ...]) -> bool:
    return any(step.state in (StepState.PENDING, StepState.DISPATCHED, StepState.RUNNING) for step in steps)


def _idle(facts: Facts, at: datetime) -> list[Waits]:
    """The steps that nobody works at, each with the reason that the API tells too."""
    reasons = Reasons(facts.run, facts.steps, attempts_of(facts.run.id))
    alike: dict[tuple[str, str, str, bool, bool], list[Step]] = {}
    for step in facts.steps:
        lapsed = _offer_over(facts, step, at)
        if why := lapsed or reasons.of_step(step):
            due = step.next_dispatch_at
            again = span((due - at).total_seconds()) if due is not None and due > at else ""
            state = WAITS_FOR_A_WORKER if facts.waits_for_a_worker(step) else str(step.state)
            begun = _has_begun(facts, step)
            alike.setdefault((state, why, again, bool(lapsed), begun), []).append(step)
    return [_idle_steps(steps, *told) for told, steps in alike.items()]


def _has_begun(facts: Facts, step: Step) -> bool:
    """Tell whether somebody was at it before: it goes on then, where others start."""
    asked = any(view.step_id == step.id for view in facts.approvals)
    return asked or len(facts.tries(step)) > 1


def _offer_over(facts: Facts, step: Step, at: datetime) -> str:
    """Of a step whose last offer nobody took up in time, and nobody has taken back yet."""
    offers = (one for one in facts.leases if one.step_id == step.id and one.state == LeaseState.OFFERED)
    end = max((one.expires_at for one in offers), default=None)
    if end is None or end + grace() > at:
        return ""
    told = f"The worker that it was offered to has not taken it up; the offer ended at {end:%H:%M:%S} UTC"
    return f"{told}, and it is offered to another once that is taken back."


class Answers:
    """Hold who may answer the questions of one run, as the approvals judge it; alike questions are judged
    once.

    A fan-out may ask a hundred of them, of the same people by the same rule.
    """

    def __init__(self, ctx: Context, asked: Sequence[ApprovalView]) -> None:
        self._ctx = ctx
        self._asked = asked
        self._electorate = Electorate()
        self._rights: dict[tuple[object, ...], Right | None] = {}
        self._stops: dict[tuple[str, UUID | None], str] = {}

    def stops(self, view: ApprovalView) -> str:
        """Return why no answer would be taken: that lies with the run, whichever of its questions it is."""
        key = (view.subject_type, view.run_id)
        if key not in self._stops:
            self._stops[key] = why_unanswerable(view)
        return self._stops[key]

    def missing(self, view: ApprovalView) -> int:
        """Of how many people a yes is still needed: of one at least, for the last answer closes it."""
        return max(1, self._still_needed(view))

    def voted(self, view: ApprovalView) -> str:
        """Return why the reader's yes would count for nothing more, of one that they may decide on."""
        right = self.right(view)
        if right is None or not view.votes or self._still_needed(view) <= 0:
            return ""
        return voted_already(right, self._votes[view.id], self._electorate)

    def _still_needed(self, view: ApprovalView) -> int:
        counted = sum(one.counts for one in self._votes[view.id]) if view.votes else 0
        return view.quorum - counted

    @cached_property
    def _votes(self) -> dict[UUID, list[Judged]]:
        """Read for all of the questions at once, when the first of them has a vote."""
        return votes_judged_of(self._asked)

    def right(self, view: ApprovalView) -> Right | None:
        """Return what the reader may decide by; all that it rests on is in the key."""
        asked = (view.requested_by, view.requester_person, view.author_person)
        key = (view.project_id, view.approver_roles, *asked)
        if key not in self._rights:
            try:
                self._rights[key] = right_to_decide(self._ctx, view)
            except Forbidden:
                self._rights[key] = None
        return self._rights[key]


def _question(answers: Answers, facts: Facts, view: ApprovalView, at: datetime) -> Waits:
    left, stops = (view.expires_at - at).total_seconds(), answers.stops(view)
    asked = view.summary if view.summary.endswith("?") else f"{view.summary}."
    ends = "it is asked once more" if view.may_be_renewed and not stops else "the run fails"
    of = next((step.node_key for step in facts.steps if step.id == view.step_id), "")
    title, why = _who_decides(answers, view, f" on {of}" if of else "", over=left <= 0)
    first = [one for one in (why, asked) if one]
    shut = bool(stops) or left <= 0
    is_theirs = not shut and answers.right(view) is not None and not answers.voted(view)
    return Waits(
        "Pending",
        title,
        f"{' '.join(first)} Asked {span((at - view.requested_at).total_seconds())} ago; "
        + (f"in {span(left)} it expires and {ends}." if left > 0 else f"its time is over: {ends}."),
        reverse("admin:approvals_approvalrequest_change", args=[view.id]),
        "Open the decision" if is_theirs else "Read the question",
        stuck=shut or view.names_nobody,
        is_theirs=is_theirs,
    )


NOBODY = (
    "The rules and the node name no role in common, and a newer policy does not change what this run was "
    "accepted under. Unless a PlatformAdmin breaks the glass on the page of the question, the run can only "
    "be cancelled."
)


def _who_decides(answers: Answers, view: ApprovalView, on: str, *, over: bool) -> tuple[str, str]:
    """Return who answers it, and what the reader should know first: the judgement of the page of the
    decision."""
    if over:
        return f"Nobody decided{on} in time", ""
    if stops := answers.stops(view):
        return f"No answer{on} would be taken as things stand", stops
    if view.names_nobody:
        return f"Nobody can decide{on}", NOBODY
    return _still_decide(answers, view, on), answers.voted(view)


def _still_decide(answers: Answers, view: ApprovalView, on: str) -> str:
    """Those whose yes is missing, as the reader sees them: how many where one alone is not enough."""
    missing, roles = answers.missing(view), " or ".join(view.approver_roles)
    some_have = missing < view.quorum
    if answers.voted(view):
        return f"Another person decides{on}" if missing == 1 else f"{missing} other people decide{on}"
    if answers.right(view) is not None:
        if missing == 1:
            return f"You decide, or another who may,{on}"
        return f"{missing}{' more' if some_have else ''} people decide{on}, and you may be one of them"
    if missing == 1:
        return f"{'Another' if some_have else 'A'} {roles} decides{on}"
    return f"{missing}{' more' if some_have else ''} people decide{on}, each of them {roles}"


def _doubt(run: Run, step: Step) -> Waits:
    told = (
        "Nobody knows whether what it was to do has happened: its attempt says why. "
        "Nobody repeats it by themselves."
    )
    title = f"An Operator settles {step.node_key}"
    if run.frozen_at is not None:
        return Waits("Uncertain", title, f"{told} {REFUSED}", stuck=True, is_theirs=False)
    limit = " This has no time limit: the run's clock stands still meanwhile." if run.is_working else ""
    return Waits("Uncertain", title, f"{told}{limit}", "#settle", "Settle it")


def _interruption(lease: Lease, at: datetime) -> Waits:
    end = lease.expires_at + grace()
    left = (end - at).total_seconds()
    if left <= 0:
        told = (
            f"Its lease ended at {lease.expires_at:%H:%M:%S} UTC, and it was waited for until "
            f"{end:%H:%M:%S}: its attempt becomes Uncertain."
        )
        return Waits("Cancelling", f"{lease.worker_name} did not stop in time", told)
    return Waits(
        "Cancelling",
        f"{lease.worker_name} stops",
        f"It is told to at its next renewal. If it does not answer, in {span(left)} it is waited for no "
        f"longer: at {end:%H:%M:%S} UTC its attempt becomes Uncertain.",
    )


def _idle_steps(steps: list[Step], state: str, why: str, again: str, lapsed: bool, begun: bool) -> Waits:
    """Steps that wait for the same, as one: a fan-out may have a hundred of them."""
    named = ", ".join(step.node_key for step in steps[:3])
    more = f" and {len(steps) - 3} more" if len(steps) > 3 else ""
    one = len(steps) == 1
    verb = "waits" if one else "wait"
    if again:
        return Waits("Pending", f"{named}{more} {verb} to be tried again", f"In {again}.")
    goes = ("it goes on" if begun else "it starts") if one else ("they go on" if begun else "they start")
    told = why if lapsed else f"{why} As soon as that changes, {goes}."
    return Waits(state, f"{named}{more} {verb} for a worker", told)
