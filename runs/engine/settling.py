"""What follows when an Operator settles an attempt of which nobody knows how it ended.

One function says it: the command moves the step by it, and the page promises by it before anybody answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from runs.engine.planning import CANCELLED, FAILED, SUCCEEDED, Failed, Plan, PlanCompleted

HAPPENED, DID_NOT_HAPPEN, GAVE_UP = "effect-happened", "effect-did-not-happen", "give-up"
PENDING, RUNNING, WAITING, COMPLETED = "Pending", "Running", "WaitingForApproval", "Completed"
BECOMES: Mapping[str, str] = {HAPPENED: SUCCEEDED, DID_NOT_HAPPEN: PENDING, GAVE_UP: FAILED}

FROZEN = "the run is frozen"
OVER = "the run goes on no more"
OUT_OF_TIME = "its time is over"
OUT_OF_MONEY = "its money stops it"
NO_NEXT = "the policy denies what it asks next"


@dataclass(frozen=True, slots=True)
class Next:
    """Tell what the workflow does once the step is in a state: its plan, and what that needs of people."""

    plan: Plan
    remains: bool
    asks: bool
    denied: bool


@dataclass(frozen=True, slots=True)
class Situation:
    """All of a run at a moment that decides what follows. `next` is by the state that the step comes to.

    `own` and `others`: its own request, or that of another step, is Pending. `money`: what the policy says
    about money that stops the run, `ask` or `fail`; empty while none does.
    """

    frozen: bool
    goes_on: bool
    suspended: bool
    out_of_time: bool
    uncertain: bool
    own: bool
    others: bool
    money: str
    next: Mapping[str, Next]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Tell what follows: the states of step and run, or that it is refused, and why if it is no success.

    `retried`: another attempt is due at once. An empty state is one that stays as it is. A run that is out
    of time and does not fail yet fails as soon as its clock runs again: until then nothing is dispatched.
    """

    refused: bool = False
    step: str = ""
    run: str = ""
    why: str = ""
    retried: bool = False

    @property
    def moves(self) -> bool:
        """Return whether step and run move; otherwise the evidence is kept, and that is all."""
        return bool(self.run)


def outcome_of_settling(situation: Situation, resolution: str) -> Outcome:
    """Return what follows if the Operator says this now."""
    if situation.frozen:
        return Outcome(refused=True, why=FROZEN)
    if not situation.goes_on:
        return Outcome(why=OVER)
    step = BECOMES[resolution]
    run, why = _run_after(situation, step, situation.next[step])
    retried = (step, run, why) == (PENDING, RUNNING, "") and not situation.suspended
    return Outcome(step=CANCELLED if _ends_with(run, step) else step, run=run, why=why, retried=retried)


def _ends_with(run: str, step: str) -> bool:
    """A step that was to be tried again ends with a run that fails instead."""
    return step == PENDING and run == FAILED


def _run_after(now: Situation, step: str, then: Next) -> tuple[str, str]:
    if isinstance(then.plan, Failed):
        return FAILED, then.plan.reason
    if isinstance(then.plan, PlanCompleted):
        return COMPLETED, ""
    waits = now.others or (now.own and step == PENDING)
    if now.money == "fail":
        return FAILED, OUT_OF_MONEY
    if now.money == "ask":
        waits = waits or then.remains
    elif then.denied:
        return FAILED, NO_NEXT
    else:
        waits = waits or then.asks
    late = OUT_OF_TIME if now.out_of_time else ""
    if waits:
        return WAITING, late or (OUT_OF_MONEY if now.money else "")
    return (FAILED if late and not (now.suspended or now.uncertain) else RUNNING), late
