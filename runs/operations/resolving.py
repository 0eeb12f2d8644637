"""All that decides what follows when an Operator settles an uncertain attempt, read at one moment."""

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from uuid import UUID

from approvals.selectors import pending_of_run
from approvals.states import Effect, SubjectType
from projects.selectors import project
from projects.states import ProjectState
from runs.engine import BECOMES, HUMAN, Next, Ready, Situation, StepFact
from runs.models import Attempt, Run, Step
from runs.operations.advancing import facts_of, plan_of
from runs.operations.asking import first_denied
from runs.operations.overspending import is_ahead, some_are_parked, verdict_about_money
from runs.selectors.clocks import clock_of
from runs.selectors.limits import why_money_stops
from runs.states import Attention, FailureClass, StepState


class Situations:
    """The situations of a run's uncertain steps at `at`; what they have in common is read once."""

    def __init__(self, run: Run, at: datetime) -> None:
        self._run, self._at = run, at

    def of(self, step: Step, attempt: Attempt) -> Situation:
        """Return what decides the outcome if this attempt is settled now."""
        run = self._run
        goes_on = run.is_working and step.state == StepState.RUNNING
        return Situation(
            frozen=run.frozen_at is not None,
            goes_on=goes_on,
            suspended=self._suspended,
            out_of_time=self._out_of_time,
            uncertain=bool(self._uncertain_steps - {step.id}),
            own=step.id in self._asking,
            others=bool(self._asking - {step.id}),
            money=self._money if goes_on else "",
            next={state: self._next(step, attempt, state) for state in BECOMES.values()} if goes_on else {},
        )

    @cached_property
    def _suspended(self) -> bool:
        its_project = project(self._run.project_id)
        return its_project is None or its_project.state != ProjectState.ACTIVE

    @cached_property
    def _out_of_time(self) -> bool:
        clock = clock_of(self._run)
        return clock is not None and clock.is_over(self._at)

    @cached_property
    def _uncertain_steps(self) -> set[UUID]:
        rows = Step.objects.filter(run_id=self._run.id, attention=Attention.UNCERTAIN)
        return set(rows.values_list("id", flat=True))

    @cached_property
    def _asking(self) -> set[UUID | None]:
        """The steps whose requests are Pending."""
        pending = pending_of_run(self._run.id)
        return {view.step_id for view in pending if view.subject_type != SubjectType.SPEND}

    @cached_property
    def _money(self) -> str:
        if not why_money_stops(self._run):
            return ""
        return "fail" if verdict_about_money(self._run).effect is Effect.DENY else "ask"

    @cached_property
    def _facts(self) -> list[StepFact]:
        return facts_of(self._run)

    @cached_property
    def _parked(self) -> bool:
        return some_are_parked(self._run)

    def _next(self, step: Step, attempt: Attempt, state: str) -> Next:
        facts = _with(self._facts, step, attempt, state)
        plan = plan_of(self._run, facts)
        if not isinstance(plan, Ready):
            return Next(plan, remains=False, asks=False, denied=False)
        states = {fact.key: str(fact.state) for fact in facts}
        states |= {settled.node.key: settled.state for settled in plan.settled}
        asked = [due.node for due in plan.due if due.node.kind == HUMAN]
        denied = bool(asked) and first_denied(self._run, asked) is not None
        return Next(plan, is_ahead(self._run, states) or self._parked, bool(asked), denied)


def _with(facts: Sequence[StepFact], step: Step, attempt: Attempt, state: str) -> list[StepFact]:
    """The facts with the uncertain step in another state, as the command would leave it."""
    failed = str(FailureClass.UNCERTAIN) if state == StepState.FAILED else ""
    settled = StepFact(step.node_key, state, attempt.output, failed, step.reason)
    return [settled if fact.key == step.node_key else fact for fact in facts]
