"""A run: what was asked, what it was pinned to when it was accepted, and how it stands."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django_fsm import FSMField, transition

from factory.kernel.lifecycle import Lifecycle
from factory.kernel.models.base import Journaled, TenantForeignKey, in_check
from runs.engine import Clock, Span
from runs.states import RUN, RUN_TERMINAL, RUN_WORKING, FailureClass, RunState

S = RunState


class Run(Journaled):
    """One execution of a workflow of one release, for one requester."""

    lifecycle: ClassVar[Lifecycle] = RUN

    project = TenantForeignKey("projects.Project", related_name="+")
    environment = TenantForeignKey("projects.Environment", null=True, related_name="+")
    workflow_id = models.CharField(max_length=63)
    release = TenantForeignKey("registry.Release", related_name="+")
    release_hash = models.CharField(max_length=71)
    policy = TenantForeignKey("approvals.PolicyRevision", related_name="+")
    policy_name = models.CharField(max_length=64)
    policy_revision = models.CharField(max_length=16)
    model_profile_id = models.CharField(max_length=64)
    snapshot = TenantForeignKey("runs.Snapshot", related_name="+")
    input_hash = models.CharField(max_length=71)
    limits = models.JSONField()
    requested_by = models.CharField(max_length=255)
    requester_person = models.CharField(max_length=255)
    idempotency_key = models.CharField(max_length=255)
    previous_run = TenantForeignKey("runs.Run", null=True, related_name="+")
    template = TenantForeignKey("runs.RunTemplate", null=True, related_name="+")
    created_at = models.DateTimeField()

    state = FSMField(default=RunState.ACCEPTED, choices=RunState.choices, protected=True, editable=False)
    version = models.BigIntegerField(default=0)
    budget_reservation_id = models.UUIDField(null=True)
    started_at = models.DateTimeField(null=True)
    waiting_since = models.DateTimeField(null=True)
    deadline_at = models.DateTimeField(null=True)
    clock_since = models.DateTimeField(null=True)
    clock_because = ArrayField(models.CharField(max_length=16), default=list, db_default=[], blank=True)
    finished_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField()
    failure_class = models.CharField(max_length=16, blank=True)
    reason = models.TextField(blank=True)
    output = models.JSONField(null=True)
    output_hash = models.CharField(max_length=71, blank=True)
    frozen_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint("tenant_id", "project", "idempotency_key", name="run_key_once"),
            models.CheckConstraint(condition=in_check("state", RunState.values), name="run_state_known"),
            models.CheckConstraint(
                condition=Q(state__in=sorted(RUN_TERMINAL), finished_at__isnull=False)
                | (~Q(state__in=sorted(RUN_TERMINAL)) & Q(finished_at__isnull=True)),
                name="run_finished_at_its_end",
            ),
            models.CheckConstraint(
                condition=Q(state=S.FAILED, failure_class__in=FailureClass.values)
                | (~Q(state=S.FAILED) & Q(failure_class="")),
                name="run_failed_of_a_class",
            ),
            models.CheckConstraint(
                condition=(Q(state=S.COMPLETED) & ~Q(output_hash=""))
                | (~Q(state=S.COMPLETED) & Q(output_hash="")),
                name="run_completed_with_an_output",
            ),
            models.CheckConstraint(
                condition=Q(state=S.WAITING, waiting_since__isnull=False)
                | (~Q(state=S.WAITING) & Q(waiting_since__isnull=True)),
                name="run_waiting_since",
            ),
            models.CheckConstraint(
                condition=Q(started_at__isnull=False, deadline_at__isnull=False)
                | Q(
                    state__in=[S.ACCEPTED, S.FAILED, S.CANCELLED],
                    started_at__isnull=True,
                    deadline_at__isnull=True,
                ),
                name="run_started_with_a_deadline",
            ),
            models.CheckConstraint(
                condition=Q(clock_since__isnull=False, deadline_at__isnull=False)
                | Q(clock_since__isnull=True, clock_because=[]),
                name="run_deadline_with_its_clock",
            ),
        ]
        indexes: ClassVar[list[Any]] = [
            models.Index(fields=["tenant_id", "project", "-created_at", "-id"], name="run_newest"),
            models.Index(fields=["tenant_id", "-created_at", "-id"], name="run_by_time"),
            models.Index(fields=["tenant_id", "state", "-created_at", "-id"], name="run_by_state"),
            models.Index(fields=["tenant_id", "workflow_id", "-created_at", "-id"], name="run_by_workflow"),
            models.Index(fields=["tenant_id", "requested_by", "-created_at", "-id"], name="run_by_requester"),
            models.Index(fields=["tenant_id", "idempotency_key"], name="run_by_key"),
            models.Index(
                fields=["tenant_id", "failure_class", "-created_at", "-id"],
                condition=~Q(failure_class=""),
                name="run_by_failure",
            ),
            models.Index(fields=["tenant_id", "updated_at"], name="run_updated"),
            models.Index(fields=["deadline_at", "id"], condition=Q(state=S.RUNNING), name="run_deadline"),
            models.Index(
                fields=["tenant_id", "state"],
                condition=~Q(state__in=sorted(RUN_TERMINAL)),
                name="run_active",
            ),
            models.Index(
                fields=["tenant_id", "finished_at"],
                include=["project", "state", "failure_class"],
                condition=Q(finished_at__isnull=False),
                name="run_ended",
            ),
            models.Index(
                fields=["tenant_id", "requester_person", "-created_at", "-id"], name="run_newest_of_person"
            ),
            models.Index(
                fields=["previous_run"], condition=Q(previous_run__isnull=False), name="run_again_of"
            ),
            models.Index(
                fields=["template", "-created_at", "-id"],
                condition=Q(template__isnull=False),
                name="run_newest_of_template",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.workflow_id} …{str(self.id)[-8:]}"

    @property
    def run_id(self) -> UUID:
        """Itself: for the references of its events."""
        return self.id

    @property
    def journal_snapshot(self) -> dict[str, Any]:
        snapshot = {
            "reservationId": self.budget_reservation_id,
            "startedAt": self.started_at,
            "deadlineAt": self.deadline_at,
            "clockSince": self.clock_since,
            "clockBecause": self.clock_because or None,
        }
        return {name: value for name, value in snapshot.items() if value is not None}

    @property
    def is_terminal(self) -> bool:
        return self.state in RUN_TERMINAL

    @property
    def is_working(self) -> bool:
        """Return whether what a holder reports still moves the run."""
        return self.state in RUN_WORKING

    @transition(field=state, source=S.ACCEPTED, target=S.RUNNING)
    def start(self, *, at: datetime) -> None:
        self.started_at = self.updated_at = at
        self.deadline_at = at + timedelta(minutes=self.limits["maxMinutes"])
        self.clock_since = at

    @transition(field=state, source=S.RUNNING, target=S.WAITING)
    def wait(self, *, at: datetime) -> None:
        self.waiting_since = self.updated_at = at

    @transition(field=state, source=S.WAITING, target=S.RUNNING)
    def resume(self, *, at: datetime) -> None:
        self.waiting_since, self.updated_at = None, at

    @transition(field=state, source=S.RUNNING, target=S.COMPLETED)
    def complete(self, *, at: datetime, output: Any, output_hash: str) -> None:
        self.output, self.output_hash = output, output_hash
        self.finished_at = self.updated_at = at

    @transition(field=state, source=[S.ACCEPTED, S.RUNNING, S.WAITING], target=S.FAILED)
    def fail(self, *, at: datetime, failure_class: str, reason: str) -> None:
        self.waiting_since = None
        self.failure_class, self.reason = failure_class, reason
        self.finished_at = self.updated_at = at

    @transition(field=state, source=[S.RUNNING, S.WAITING], target=S.CANCELLING)
    def cancel(self, *, at: datetime, reason: str) -> None:
        self.waiting_since, self.updated_at = None, at
        self.reason = reason

    @transition(field=state, source=S.ACCEPTED, target=S.CANCELLED)
    def cancel_at_once(self, *, at: datetime, reason: str) -> None:
        self.reason = reason
        self.finished_at = self.updated_at = at

    @transition(field=state, source=S.CANCELLING, target=S.CANCELLED)
    def finish_cancelling(self, *, at: datetime) -> None:
        self.finished_at = self.updated_at = at

    def clock(self, suspensions: Sequence[Span] = ()) -> Clock | None:
        """Return the clock that `maxMinutes` counts by; None before the first dispatch."""
        if self.deadline_at is None or self.clock_since is None:
            return None
        return Clock(self.deadline_at, self.clock_since, tuple(self.clock_because), suspensions)

    def set_clock(self, clock: Clock) -> None:
        """No transition: what stops the clock is a state of something."""
        self.deadline_at, self.clock_since = clock.due, clock.since
        self.clock_because = list(clock.because)
