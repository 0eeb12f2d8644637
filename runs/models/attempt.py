"""An attempt at a step, with at most one outcome."""

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db import models
from django.db.models import Q
from django_fsm import FSMField, transition

from factory.kernel.lifecycle import Lifecycle
from factory.kernel.models.base import Journaled, TenantForeignKey, in_check
from runs.states import ATTEMPT, ATTEMPT_ACTIVE, ATTEMPT_TERMINAL, AttemptState, FailureClass

S = AttemptState
ACTIVE = sorted(ATTEMPT_ACTIVE)


class Attempt(Journaled):
    """Keep an attempt. It has a current lease, or is parked until a person has decided, or is settled."""

    lifecycle: ClassVar[Lifecycle] = ATTEMPT

    run = TenantForeignKey("runs.Run", related_name="attempts")
    step = TenantForeignKey("runs.Step", related_name="attempts")
    number = models.PositiveSmallIntegerField()
    dispatched_at = models.DateTimeField()

    state = FSMField(default=AttemptState.OPEN, choices=AttemptState.choices, protected=True, editable=False)
    lease_id = models.UUIDField(null=True)
    held_at = models.DateTimeField(null=True)
    approval_id = models.UUIDField(null=True)
    checkpoint = models.JSONField(null=True)
    resume_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    outcome_hash = models.CharField(max_length=71, blank=True)
    failure_class = models.CharField(max_length=16, blank=True)
    reason = models.TextField(blank=True)
    output = models.JSONField(null=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["number"]
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint("tenant_id", "step", "number", name="attempt_number_once"),
            models.UniqueConstraint("step", condition=Q(state__in=ACTIVE), name="attempt_one_open_per_step"),
            models.CheckConstraint(
                condition=in_check("state", AttemptState.values), name="attempt_state_known"
            ),
            models.CheckConstraint(
                condition=Q(state__in=sorted(ATTEMPT_TERMINAL), settled_at__gte=models.F("dispatched_at"))
                | Q(state__in=ACTIVE, settled_at__isnull=True),
                name="attempt_settled_at_its_outcome",
            ),
            models.CheckConstraint(
                condition=Q(state=S.OPEN, lease_id__isnull=False)
                | Q(state=S.PARKED, lease_id__isnull=True, held_at__isnull=False)
                | Q(state__in=sorted(ATTEMPT_TERMINAL)),
                name="attempt_open_has_a_lease",
            ),
            models.CheckConstraint(
                condition=Q(resume_at__isnull=True) | Q(state=S.PARKED), name="attempt_resumes_when_parked"
            ),
            models.CheckConstraint(
                condition=Q(state__in=[*ACTIVE, S.SUCCEEDED], failure_class="")
                | Q(
                    state__in=[S.FAILED, S.TIMED_OUT, S.CANCELLED, S.UNCERTAIN],
                    failure_class__in=FailureClass.values,
                ),
                name="attempt_failed_of_a_class",
            ),
        ]
        indexes: ClassVar[list[Any]] = [
            models.Index(fields=["run", "step", "number"], name="attempt_by_step"),
            models.Index(
                fields=["tenant_id", "resume_at", "id"],
                condition=Q(state=S.PARKED),
                name="attempt_parked",
            ),
            models.Index(fields=["tenant_id", "id"], condition=Q(state__in=ACTIVE), name="attempt_open"),
            models.Index(
                fields=["tenant_id", "settled_at"],
                include=["dispatched_at", "run"],
                condition=Q(settled_at__isnull=False, approval_id__isnull=True),
                name="attempt_settled",
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number}"

    @property
    def stream(self) -> UUID:
        """The chain of its run."""
        return self.run_id

    @property
    def attempt_id(self) -> UUID:
        """Itself: for the references of its events."""
        return self.id

    @property
    def project_id(self) -> UUID:
        """For the references of its events."""
        return self.run.project_id

    @property
    def journal_snapshot(self) -> dict[str, Any]:
        snapshot = {
            "leaseId": self.lease_id,
            "heldAt": self.held_at,
            "approvalId": self.approval_id,
            "resumeAt": self.resume_at,
        }
        return {name: value for name, value in snapshot.items() if value is not None}

    @property
    def outcome(self) -> str | None:
        """Return how it ended, if it has."""
        return str(self.state) if self.state in ATTEMPT_TERMINAL else None

    @transition(field=state, source=S.OPEN, target=S.PARKED)
    def park(self, *, resume_at: datetime | None) -> None:
        self.lease_id, self.resume_at = None, resume_at

    @transition(field=state, source=S.PARKED, target=S.PARKED)
    def decide(self, *, at: datetime) -> None:
        self.resume_at = at

    @transition(field=state, source=S.PARKED, target=S.OPEN)
    def lease_again(self, *, lease_id: UUID) -> None:
        self.lease_id, self.resume_at = lease_id, None

    @transition(field=state, source=S.OPEN, target=S.SUCCEEDED)
    def succeed(self, *, at: datetime, outcome_hash: str) -> None:
        self.outcome_hash, self.settled_at = outcome_hash, at

    @transition(field=state, source=[S.OPEN, S.PARKED], target=S.FAILED)
    def fail(self, *, at: datetime, failure_class: str, reason: str, outcome_hash: str = "") -> None:
        self._end(at, failure_class, reason, outcome_hash)

    @transition(field=state, source=S.OPEN, target=S.TIMED_OUT)
    def time_out(self, *, at: datetime, reason: str, outcome_hash: str = "") -> None:
        self._end(at, FailureClass.TRANSIENT, reason, outcome_hash)

    @transition(field=state, source=[S.OPEN, S.PARKED], target=S.CANCELLED)
    def cancel(self, *, at: datetime, reason: str, outcome_hash: str = "") -> None:
        self._end(at, FailureClass.CANCELLATION, reason, outcome_hash)

    @transition(field=state, source=[S.OPEN, S.PARKED], target=S.UNCERTAIN)
    def mark_uncertain(self, *, at: datetime, reason: str, outcome_hash: str = "") -> None:
        self._end(at, FailureClass.UNCERTAIN, reason, outcome_hash)

    def _end(self, at: datetime, failure_class: str, reason: str, outcome_hash: str = "") -> None:
        self.settled_at, self.resume_at = at, None
        self.failure_class, self.reason, self.outcome_hash = str(failure_class), reason, outcome_hash
