"""The words of runs, and the four state machines: run, step, attempt, lease; and that of run templates.

The four stand in one chain, the run's, so that its journal tells the whole story in order.
"""

from typing import Final

from django.db.models import TextChoices

from factory.kernel.colours import Colour, ColouredChoices
from factory.kernel.lifecycle import Edge, Lifecycle

RUN_ACCEPTED: Final = "run-control.runs.v1.run-accepted"
RUN_STATE_CHANGED: Final = "run-control.runs.v1.run-state-changed"
RUN_COMPLETED: Final = "run-control.runs.v1.run-completed"
RUN_FAILED: Final = "run-control.runs.v1.run-failed"
RUN_CANCELLED: Final = "run-control.runs.v1.run-cancelled"
ATTEMPT_DISPATCHED: Final = "run-control.attempts.v1.attempt-dispatched"
ATTEMPT_OUTCOME_RECORDED: Final = "run-control.attempts.v1.attempt-outcome-recorded"
LEASE_EXPIRED: Final = "run-control.leases.v1.lease-expired"
STEP_READY: Final = "workflow-engine.steps.v1.step-ready"
WORKFLOW_RUN_COMPLETED: Final = "workflow-engine.runs.v1.workflow-run-completed"
WORKFLOW_RUN_FAILED: Final = "workflow-engine.runs.v1.workflow-run-failed"
RUN_TEMPLATE_CHANGED: Final = "run-control.run-templates.v1.run-template-changed"


class RunState(ColouredChoices):
    ACCEPTED = "Accepted", Colour.BUSY
    RUNNING = "Running", Colour.BUSY
    WAITING = "WaitingForApproval", Colour.WAIT, "WaitingForApproval"
    CANCELLING = "Cancelling", Colour.WAIT
    COMPLETED = "Completed", Colour.GOOD
    FAILED = "Failed", Colour.BAD
    CANCELLED = "Cancelled", Colour.PLAIN


class TemplateState(ColouredChoices):
    """A template is not changed: it is retired, and another takes its name."""

    ACTIVE = "Active", Colour.GOOD
    RETIRED = "Retired", Colour.PLAIN


class StepState(ColouredChoices):
    PENDING = "Pending", Colour.WAIT
    DISPATCHED = "Dispatched", Colour.BUSY
    RUNNING = "Running", Colour.BUSY
    SUCCEEDED = "Succeeded", Colour.GOOD
    FAILED = "Failed", Colour.BAD
    SKIPPED = "Skipped", Colour.PLAIN
    CANCELLED = "Cancelled", Colour.PLAIN


class AttemptState(ColouredChoices):
    """Open under a lease, Parked without one, or one of the five outcomes."""

    OPEN = "Open", Colour.BUSY
    PARKED = "Parked", Colour.WAIT
    SUCCEEDED = "Succeeded", Colour.GOOD
    FAILED = "Failed", Colour.BAD
    TIMED_OUT = "TimedOut", Colour.BAD, "TimedOut"
    CANCELLED = "Cancelled", Colour.PLAIN
    UNCERTAIN = "Uncertain", Colour.DOUBT


class LeaseState(ColouredChoices):
    OFFERED = "Offered", Colour.BUSY
    HELD = "Held", Colour.GOOD
    RELEASED = "Released", Colour.PLAIN
    SETTLED = "Settled", Colour.GOOD
    EXPIRED = "Expired", Colour.BAD
    REVOKED = "Revoked", Colour.BAD


class FailureClass(TextChoices):
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    VALIDATION = "validation"
    POLICY_DENIED = "policy-denied", "policy-denied"
    BUDGET = "budget"
    CANCELLATION = "cancellation"
    UNCERTAIN = "uncertain"


class Attention(TextChoices):
    """Name what an Operator has to look at."""

    NONE = "", "none"
    UNCERTAIN = "uncertain"
    VIOLATION = "violation"
    LATE_EFFECT = "late-effect", "late-effect"


class PageState(ColouredChoices):
    """Name what pages say where no row has a state for it."""

    WAITS_FOR_A_WORKER = "Waits for a worker", Colour.WAIT
    WAITS_FOR_PEOPLE = "Waits for approval", Colour.WAIT
    VIOLATION = "Violation", Colour.BAD
    LATE_EFFECT = "Late effect", Colour.DOUBT
    DRAINING = "Draining", Colour.PLAIN
    OFFLINE = "Offline", Colour.BAD


RUN_ACTIVE: Final = frozenset({RunState.ACCEPTED, RunState.RUNNING, RunState.WAITING, RunState.CANCELLING})
RUN_TERMINAL: Final = frozenset(RunState) - RUN_ACTIVE
RUN_OPEN: Final = frozenset({RunState.ACCEPTED, RunState.RUNNING, RunState.WAITING})
"""States from which a run can still be stopped: nobody has asked for it yet, and it is not over."""
RUN_WORKING: Final = frozenset({RunState.RUNNING, RunState.WAITING})
"""States in which a holder's work still counts for the run."""
STEP_ACTIVE: Final = frozenset({StepState.PENDING, StepState.DISPATCHED, StepState.RUNNING})
STEP_TERMINAL: Final = frozenset(StepState) - STEP_ACTIVE
ATTEMPT_ACTIVE: Final = frozenset({AttemptState.OPEN, AttemptState.PARKED})
ATTEMPT_TERMINAL: Final = frozenset(AttemptState) - ATTEMPT_ACTIVE
LEASE_CURRENT: Final = frozenset({LeaseState.OFFERED, LeaseState.HELD})
LEASE_TERMINAL: Final = frozenset(LeaseState) - LEASE_CURRENT

_FAILED = (RUN_STATE_CHANGED, RUN_FAILED)
_ENGINE_FAILED = (*_FAILED, WORKFLOW_RUN_FAILED)

RUN: Final = Lifecycle(
    "run",
    (
        Edge("", "Accepted", causes=("Submitted",), events=(RUN_ACCEPTED,)),
        Edge(
            "Accepted",
            "Running",
            causes=("FirstAttemptDispatched", "HumanStepOpened", "NothingToRun"),
            events=(RUN_STATE_CHANGED,),
        ),
        Edge(
            "Accepted",
            "Failed",
            causes=("BudgetDenied", "ReservationExpired", "SpendRejected", "SpendExpired"),
            events=_FAILED,
        ),
        Edge("Accepted", "Failed", causes=("ReleaseRevoked", "ReleaseDeprecated"), events=_FAILED),
        Edge("Accepted", "Failed", causes=("WorkflowFailed",), events=_ENGINE_FAILED),
        Edge(
            "Accepted",
            "Cancelled",
            causes=("CancelRequestedBeforeDispatch",),
            events=(RUN_STATE_CHANGED, RUN_CANCELLED),
        ),
        Edge("Running", "WaitingForApproval", causes=("ApprovalRequested",), events=(RUN_STATE_CHANGED,)),
        Edge(
            "WaitingForApproval",
            "Running",
            causes=("ApprovalGranted", "ChangesRequested", "ApprovalWithdrawn"),
            events=(RUN_STATE_CHANGED,),
        ),
        Edge("WaitingForApproval", "Failed", causes=("ApprovalRejected", "ApprovalExpired"), events=_FAILED),
        Edge(
            "Running",
            "Completed",
            causes=("LastStepSucceeded",),
            events=(RUN_STATE_CHANGED, RUN_COMPLETED, WORKFLOW_RUN_COMPLETED),
        ),
        *(
            edge
            for state in ("Running", "WaitingForApproval")
            for edge in (
                Edge(state, "Failed", causes=("DeadlineExceeded", "BudgetExhausted"), events=_FAILED),
                Edge(state, "Failed", causes=("ReleaseRevoked", "ReleaseDeprecated"), events=_FAILED),
                Edge(
                    state, "Failed", causes=("StepFailedTerminally", "WorkflowFailed"), events=_ENGINE_FAILED
                ),
                Edge(state, "Cancelling", causes=("CancelRequested",), events=(RUN_STATE_CHANGED,)),
            )
        ),
        Edge(
            "Cancelling",
            "Cancelled",
            causes=("AllAttemptsSettled",),
            events=(RUN_STATE_CHANGED, RUN_CANCELLED),
        ),
    ),
)

STEP: Final = Lifecycle(
    "step",
    (
        Edge("", "Pending", causes=("StepReady",), events=(STEP_READY,)),
        Edge("", "Skipped", causes=("ConditionFalse", "PredecessorsSkipped")),
        Edge("", "Succeeded", causes=("NothingToFanOut",)),
        Edge("Pending", "Dispatched", causes=("AttemptDispatched",)),
        Edge("Pending", "Running", causes=("HumanStepOpened",)),
        Edge("Pending", "Failed", causes=("CorrectionsExhausted",)),
        Edge("Dispatched", "Running", causes=("LeaseAcquired", "Restored")),
        Edge("Dispatched", "Pending", causes=("OfferWithdrawn",)),
        Edge("Running", "Pending", causes=("RetryScheduled", "EffectDidNotHappen")),
        Edge("Running", "Running", causes=("AttentionRaised",)),
        Edge("Running", "Succeeded", causes=("AttemptSucceeded", "EffectHappened", "ApprovalGranted")),
        Edge(
            "Running",
            "Failed",
            causes=(
                "AttemptFailed",
                "AttemptsExhausted",
                "PolicyViolated",
                "CorrectionsExhausted",
                "GivenUp",
            ),
        ),
        Edge("Running", "Cancelled", causes=("AttemptCancelled",)),
        *(
            Edge(state, "Cancelled", causes=("RunCancelled", "RunEnded"))
            for state in ("Pending", "Dispatched", "Running")
        ),
        Edge("Cancelled", "Cancelled", causes=("EvidenceRecorded",)),
    ),
)

ATTEMPT: Final = Lifecycle(
    "attempt",
    (
        Edge("", "Open", causes=("AttemptDispatched",), events=(ATTEMPT_DISPATCHED,)),
        Edge("Open", "Parked", causes=("Parked", "LeaseLapsedWhileWaiting", "OfferWithdrawn")),
        Edge("Parked", "Parked", causes=("Decided",)),
        Edge("Parked", "Open", causes=("AttemptDispatched",), events=(ATTEMPT_DISPATCHED,)),
        *(
            Edge("Open", outcome, causes=("OutcomeReported",), events=(ATTEMPT_OUTCOME_RECORDED,))
            for outcome in ("Succeeded", "Failed", "Cancelled", "Uncertain")
        ),
        Edge(
            "Open",
            "TimedOut",
            causes=("LeaseExpired", "OfferWithdrawn", "OutcomeReported"),
            events=(ATTEMPT_OUTCOME_RECORDED,),
        ),
        Edge("Open", "Uncertain", causes=("LeaseExpired", "Restored"), events=(ATTEMPT_OUTCOME_RECORDED,)),
        *(
            Edge(state, outcome, causes=("RunCancelled", "RunEnded"), events=(ATTEMPT_OUTCOME_RECORDED,))
            for state in ("Open", "Parked")
            for outcome in ("Cancelled", "Uncertain")
        ),
        Edge("Parked", "Failed", causes=("CorrectionsExhausted",), events=(ATTEMPT_OUTCOME_RECORDED,)),
    ),
)

LEASE: Final = Lifecycle(
    "lease",
    (
        Edge("", "Offered", causes=("AttemptDispatched",)),
        Edge("Offered", "Held", causes=("LeaseAcquired",)),
        Edge("Held", "Released", causes=("Parked",)),
        Edge("Held", "Settled", causes=("OutcomeReported",)),
        Edge("Held", "Expired", causes=("LeaseExpired", "Restored"), events=(LEASE_EXPIRED,)),
        Edge("Offered", "Expired", causes=("LeaseExpired", "Restored"), events=(LEASE_EXPIRED,)),
        Edge("Offered", "Revoked", causes=("RunCancelled", "RunEnded", "RunFrozen", "WorkerDrained")),
    ),
)

RUN_TEMPLATE: Final = Lifecycle(
    "run-template",
    (
        Edge("", "Active", causes=("Created",), events=(RUN_TEMPLATE_CHANGED,)),
        Edge("Active", "Retired", causes=("RetireRequested",), events=(RUN_TEMPLATE_CHANGED,)),
    ),
)
