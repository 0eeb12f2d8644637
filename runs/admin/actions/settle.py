"""What an Operator may say about an uncertain attempt, and what each answer leads to as things stand now."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from runs.engine import (
    DID_NOT_HAPPEN,
    GAVE_UP,
    HAPPENED,
    OUT_OF_TIME,
    OVER,
    Outcome,
    Situation,
    outcome_of_settling,
)
from runs.models import Run, Step
from runs.operations.resolving import Situations
from runs.operations.settling import attempts_used
from runs.selectors.uncertain import UncertainAttempt
from runs.states import RunState

LABELS = {HAPPENED: "The effect happened", DID_NOT_HAPPEN: "It did not happen", GAVE_UP: "Give up"}
LATE = f"{OUT_OF_TIME}, and the run fails as soon as its clock goes on"
REFUSED = (
    "The run is frozen: nobody can settle this before a PlatformAdmin lifts the freeze. It can be cancelled."
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One of the answers: its name, how it is put, and what follows."""

    value: str
    label: str
    follows: str


@dataclass(frozen=True, slots=True)
class AttemptCard:
    """A doubt with the answers that would be taken; `refused` says why none would be."""

    doubt: UncertainAttempt
    refused: str
    answers: tuple[Answer, ...]


def cards(run: Run, doubts: Sequence[UncertainAttempt], at: datetime) -> list[AttemptCard]:
    """Return the cards of a run's doubts; each promise is what the command would do at this moment."""
    situations = Situations(run, at)
    return [_card(run, doubt, situations.of(doubt.step, doubt.attempt)) for doubt in doubts]


def _card(run: Run, doubt: UncertainAttempt, situation: Situation) -> AttemptCard:
    outcomes = {value: outcome_of_settling(situation, value) for value in LABELS}
    if any(outcome.refused for outcome in outcomes.values()):
        return AttemptCard(doubt, REFUSED, ())
    answers = (
        Answer(value, LABELS[value], follows(run, doubt.step, situation, value, outcome))
        for value, outcome in outcomes.items()
    )
    return AttemptCard(doubt, "", tuple(answers))


def follows(run: Run, step: Step, situation: Situation, resolution: str, outcome: Outcome) -> str:
    """Say in a sentence what an answer leads to."""
    if outcome.why == OVER:
        return f"What you found is kept on record. The run is {run.state}: nothing of it is done any more."
    if resolution == GAVE_UP:
        return "The step and the run fail."
    if resolution == HAPPENED:
        return f"The step becomes Succeeded, {_goes_on(situation, outcome)}."
    if outcome.run == RunState.FAILED:
        return f"Nothing is tried again, and the run fails: {outcome.why}."
    if outcome.why == OUT_OF_TIME:
        return f"Nothing is tried again: {LATE}."
    return f"One more attempt{_beyond(step)}{_asks(step)}{_when(situation, outcome)}."


def _goes_on(situation: Situation, outcome: Outcome) -> str:
    if outcome.run == RunState.COMPLETED:
        return "and the run is Completed"
    if outcome.run == RunState.FAILED:
        return f"and the run fails all the same: {outcome.why}"
    if outcome.why == OUT_OF_TIME:
        return f"but {LATE}"
    if outcome.run == RunState.WAITING:
        return "and the run waits for a person" + (f": {outcome.why}" if outcome.why else "")
    return "and the run goes on" + (" once its project is resumed" if situation.suspended else "")


def _beyond(step: Step) -> str:
    used = attempts_used(step)
    return f" beyond the {step.max_attempts} that it had" if used >= step.max_attempts else ""


def _asks(step: Step) -> str:
    return ", which asks for approval again" if step.gated else ""


def _when(situation: Situation, outcome: Outcome) -> str:
    if outcome.run == RunState.WAITING:
        return f", once a person has decided{': ' + outcome.why if outcome.why else ''}"
    return ", once the project is resumed" if situation.suspended else ""
