"""A worker as its commands see it: it polls, asks, authorizes and reports."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from factory.kernel.context import Actor, Context
from factory.kernel.hashing import digest
from runs.commands import (
    ParkRequest,
    acquire_lease,
    record_receipts,
    register_worker,
    report_outcome,
    request_approval,
    take_authorization,
)
from runs.dispatch import poll_worker
from runs.selectors import assignment_scope
from runs.selectors.answers import ApprovalResult, OfferedAttempt
from tests.support.proposals import DIFF

if TYPE_CHECKING:
    from tests.support.running import House


@dataclass
class Hand:
    """A registered worker, as its HTTP calls would move it."""

    house: "House"
    name: str
    slots: int = 4
    capabilities: tuple[str, ...] = ("*/*",)
    subject: str = ""
    instance: UUID = field(init=False)

    def __post_init__(self) -> None:
        self.subject = self.subject or f"worker:{self.name}"
        self.register()

    @property
    def ctx(self) -> Context:
        scopes = frozenset({"factory.worker"})
        actor = Actor(self.subject, "worker", scopes=scopes, pool=self.house.pool)
        return Context("", None, actor, channel="worker")

    def scope(self, attempt_id: UUID) -> Context:
        return assignment_scope(self.ctx, attempt_id)

    def register(self) -> UUID:
        self.instance = register_worker(
            self.ctx,
            name=self.name,
            capabilities=self.capabilities,
            max_concurrency=self.slots,
            version="1",
        )
        return self.instance

    def poll(self) -> list[OfferedAttempt]:
        return poll_worker(self.ctx, name=self.name, instance_id=self.instance)

    def take(self) -> OfferedAttempt:
        """Poll for exactly one assignment, and acquire it."""
        [work] = self.poll()
        self.acquire(work)
        return work

    def acquire(self, work: OfferedAttempt, **other: Any) -> Any:
        return acquire_lease(self.scope(work.attempt_id), **self.fence(work), **other)

    def fence(self, work: OfferedAttempt) -> dict[str, Any]:
        return {
            "attempt_id": work.attempt_id,
            "lease_id": work.lease_id,
            "fencing_token": work.fencing_token,
        }

    def receipts(self, work: OfferedAttempt, *receipts: dict[str, Any]) -> Any:
        return record_receipts(self.scope(work.attempt_id), **self.fence(work), receipts=list(receipts))

    def report(
        self,
        work: OfferedAttempt,
        outcome: str = "Succeeded",
        failure_class: str | None = None,
        *,
        output: Any = None,
        reason: str | None = None,
        receipts: Any = (),
        **other: Any,
    ) -> Any:
        told = {
            "outcome": outcome,
            "failureClass": failure_class,
            "reason": reason,
            "output": output,
        }
        values = {
            "outcome": outcome,
            "failure_class": failure_class,
            "reason": reason,
            "output": output,
            "outcome_hash": digest(told),
            "receipts": receipts,
        }
        return report_outcome(self.scope(work.attempt_id), **self.fence(work), **{**values, **other})

    def fail(self, work: OfferedAttempt, failure_class: str = "transient", **other: Any) -> Any:
        return self.report(work, "Failed", failure_class, reason="it broke", **other)

    def ask(
        self, work: OfferedAttempt, proposal: Any = DIFF, *, park: bool | ParkRequest = False, **other: Any
    ) -> ApprovalResult:
        values = {
            "release_id": UUID(work.release["id"]),
            "snapshot_id": UUID(work.snapshot["snapshotId"]),
            "policy_revision": work.snapshot["policyRevision"],
            "action_class": "shared-write",
            "environment_id": None,
            "proposal": proposal,
            "proposal_hash": digest(proposal),
            "summary": "publish wants to commit report.md (+142)",
            "park": ParkRequest({"at": "proposal"}) if park is True else park or None,
        }
        return request_approval(self.scope(work.attempt_id), **self.fence(work), **{**values, **other})

    def authorize(self, work: OfferedAttempt, approval_id: UUID, proposal: Any = DIFF) -> Any:
        return take_authorization(
            self.scope(work.attempt_id),
            **self.fence(work),
            approval_id=approval_id,
            proposal_hash=digest(proposal),
        )
