"""What the worker-facing commands answer: frozen, in Python's names; the HTTP surface renders them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

CANCELLED, TIMED_OUT = "cancelled", "timed-out"
"""Why a holder is to stop: its run goes on no more, or the time of its step is over."""


@dataclass(frozen=True, slots=True)
class LeaseGrant:
    """An acquired or renewed lease. With a reason to `stop` the holder is to end its work and report.

    `cancel_requested`: the reason is that the run goes on no more.
    """

    lease_id: UUID
    fencing_token: int
    expires_at: datetime
    cancel_requested: bool
    stop: str | None = None


@dataclass(frozen=True, slots=True)
class ReceiptsTaken:
    """How many receipts were new. `superseded`: the lease was not current any more (answered 202)."""

    recorded: int
    superseded: bool


@dataclass(frozen=True, slots=True)
class DecisionNote:
    """A person's decision as the worker gets it."""

    approval_id: UUID
    decision: str
    proposal_hash: str
    reason: str
    decided_by: str
    decided_at: datetime
    waiver_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """`opened`: a new request was made, and waits (answered 201); else 200."""

    effect: str
    opened: bool = False
    approval_id: UUID | None = None
    version: int | None = None
    expires_at: datetime | None = None
    decision: DecisionNote | None = None
    parked: bool = False


@dataclass(frozen=True, slots=True)
class OutcomeRecorded:
    """The attempt's only outcome."""

    attempt_id: UUID
    outcome: str
    outcome_hash: str


@dataclass(frozen=True, slots=True)
class Assignment:
    """One attempt offered to the polling worker; `release` is {id, hash, manifestUrl}."""

    run_id: UUID
    step_id: UUID
    attempt_id: UUID
    number: int
    lease_id: UUID
    fencing_token: int
    expires_at: datetime
    agent_id: str
    skill_id: str | None
    input: dict[str, Any]
    snapshot: dict[str, Any]
    checkpoint: Any
    decision: DecisionNote | None
    release: dict[str, str]
