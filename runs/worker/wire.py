"""The shapes on the wire, and the one canonical form in which they are hashed."""

import hashlib
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import rfc8785

Json = Any


MOST_WHOLE = 2**53 - 1
NOT_KEPT = re.compile("[\x00\ud800-\udfff]")


def digest(value: Json) -> str:
    """`sha256:` + hex over the RFC 8785 form; ValueError for what has none."""
    return digest_bytes(canonical(value))


def canonical(value: Json) -> bytes:
    """Return the RFC 8785 form; ValueError for what has none, and for what the control plane cannot keep."""
    try:
        _check(value)
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError) as fault:
        raise ValueError(f"not canonical JSON: {fault}") from fault


def _check(value: Json) -> None:
    if isinstance(value, str) and NOT_KEPT.search(value):
        raise ValueError("not canonical JSON: a text holds NUL or half a surrogate pair")
    if isinstance(value, int | float) and not abs(value) <= MOST_WHOLE:
        raise ValueError(f"not canonical JSON: {str(value)[:40]} is beyond ±(2^53-1); tell it as text")
    if isinstance(value, Mapping):
        for name, each in value.items():
            _check(name)
            _check(each)
    elif isinstance(value, list | tuple):
        for each in value:
            _check(each)


def digest_bytes(content: bytes) -> str:
    """`sha256:` + hex over the bytes as they are."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def utc_text(seconds: float | None = None) -> str:
    """RFC 3339 in UTC. Evidence only: what is due is always judged by the control plane's clock."""
    moment = datetime.fromtimestamp(time.time() if seconds is None else seconds, UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class AssignedRelease:
    """The release that an assignment belongs to."""

    id: str
    hash: str
    manifest_url: str


@dataclass(frozen=True)
class DecisionReply:
    """Hold what a person decided on a proposal."""

    approval_id: str
    decision: str
    proposal_hash: str
    reason: str = ""
    decided_by: str = ""

    @property
    def approved(self) -> bool:
        """Only the one word means yes."""
        return self.decision == "approve"

    @property
    def changes_requested(self) -> bool:
        """The reviewer's words are in `reason`."""
        return self.decision == "request_changes"

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> "DecisionReply":
        """From the wire."""
        return cls(
            approval_id=str(body["approvalId"]),
            decision=str(body["decision"]),
            proposal_hash=str(body["proposalHash"]),
            reason=str(body.get("reason") or ""),
            decided_by=str(body.get("decidedBy") or ""),
        )


@dataclass(frozen=True)
class Assignment:
    """One attempt at one step, offered to this worker."""

    run_id: str
    step_id: str
    attempt_id: str
    number: int
    lease_id: str
    fencing_token: int
    agent_id: str
    skill_id: str | None
    input: Mapping[str, Any]
    snapshot: Mapping[str, Any]
    release: AssignedRelease
    checkpoint: Json = None
    decision: DecisionReply | None = None

    @property
    def fence(self) -> dict[str, Any]:
        """Return what every call of the holder carries."""
        return {"leaseId": self.lease_id, "fencingToken": self.fencing_token}

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> "Assignment":
        """From the wire."""
        release = body["release"]
        decision = body.get("decision")
        return cls(
            run_id=str(body["runId"]),
            step_id=str(body["stepId"]),
            attempt_id=str(body["attemptId"]),
            number=int(body["number"]),
            lease_id=str(body["leaseId"]),
            fencing_token=int(body["fencingToken"]),
            agent_id=str(body["agentId"]),
            skill_id=body.get("skillId"),
            input=body.get("input") or {},
            snapshot=body.get("snapshot") or {},
            release=AssignedRelease(str(release["id"]), str(release["hash"]), str(release["manifestUrl"])),
            checkpoint=body.get("checkpoint"),
            decision=DecisionReply.read(decision) if decision else None,
        )


@dataclass(frozen=True)
class LeaseReply:
    """An acquired or renewed lease. `remaining` is counted on the server's clock."""

    expires_at: datetime
    remaining: float
    cancel_requested: bool
    timed_out: bool = False


@dataclass(frozen=True)
class ApprovalReply:
    """Hold what RequestApproval answered."""

    effect: str
    approval_id: str | None = None
    decision: DecisionReply | None = None


@dataclass(frozen=True)
class AttemptReport:
    """Tell how an attempt ended; its hash says it once and for all."""

    outcome: str
    failure_class: str | None = None
    reason: str | None = None
    output: Json = None
    receipts: list[dict[str, Any]] = field(default_factory=list)
    artifacts: list[dict[str, Any]] = field(default_factory=list)

    def body(self) -> dict[str, Any]:
        """The members that are hashed: four, absent ones as null, and the artifacts if there are any."""
        hashed = {
            "outcome": self.outcome,
            "failureClass": self.failure_class,
            "reason": self.reason,
            "output": self.output,
        }
        return hashed | ({"artifacts": self.artifacts} if self.artifacts else {})
