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
class RefusedItem:
    """One item of a list that was not taken: where it stood, which one it is, and why; the others count."""

    pointer: str
    code: str
    detail: str
    receipt_id: str | None = None
    provider: str | None = None
    uri: str | None = None

    def named(self) -> dict[str, str]:
        """Return it as it goes over the wire, without what it does not have."""
        members = {
            "pointer": self.pointer,
            "receiptId": self.receipt_id,
            "provider": self.provider,
            "uri": self.uri,
            "code": self.code,
            "detail": self.detail,
        }
        return {name: value for name, value in members.items() if value is not None}


@dataclass(frozen=True, slots=True)
class ReceiptAnswer:
    """Tell what became of one receipt: accepted, a repeat of one that stands, or refused."""

    pointer: str
    receipt_id: str | None
    provider: str | None
    result: str
    code: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class ReceiptsTaken:
    """Tell how many receipts were new, and what became of each, in the order in which they came.

    `superseded`: the lease was not current any more (answered 202).
    """

    recorded: int
    superseded: bool
    receipts: tuple[ReceiptAnswer, ...] = ()

    @property
    def refused(self) -> tuple[RefusedItem, ...]:
        """Return those that were not taken."""
        return tuple(
            RefusedItem(each.pointer, each.code or "", each.detail or "", each.receipt_id, each.provider)
            for each in self.receipts
            if each.result == "refused"
        )


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
class ApprovalResult:
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
    """The attempt's only outcome. It counts, whatever of its receipts and artifacts was refused."""

    attempt_id: UUID
    outcome: str
    outcome_hash: str
    refused_receipts: tuple[RefusedItem, ...] = ()
    refused_artifacts: tuple[RefusedItem, ...] = ()


@dataclass(frozen=True, slots=True)
class OfferedAttempt:
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
