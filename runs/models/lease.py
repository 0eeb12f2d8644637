"""A lease: one worker's time-boxed right to an attempt."""

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.expressions import RawSQL
from django_fsm import FSMField, transition

from factory.kernel.lifecycle import Lifecycle
from factory.kernel.models.base import Journaled, TenantForeignKey, in_check
from runs.states import LEASE, LEASE_CURRENT, LEASE_TERMINAL, LeaseState

S = LeaseState
CURRENT = sorted(LEASE_CURRENT)
USED_UP = """(
    runs_lease.acquired_at IS NOT NULL AND runs_lease.state <> 'Released'
    AND NOT (runs_lease.state = 'Expired' AND EXISTS (
        SELECT 1 FROM approvals_approvalrequest q
        WHERE q.step_id = runs_lease.step_id AND q.tenant_id = runs_lease.tenant_id
          AND q.requested_at <= runs_lease.closed_at
          AND (q.closed_at IS NULL OR q.closed_at > runs_lease.closed_at))))
"""
"""Leases that count towards a step's `maxAttempts`: Held once, neither handed back nor lapsed while a person
was asked. Of that its holder is not to blame, and its attempt is parked."""
USED = RawSQL(USED_UP, (), models.BooleanField())
"""The same of rows that are asked for."""


class Lease(Journaled):
    """Whoever holds the current lease, and shows its token, speaks for the attempt; nobody else does."""

    lifecycle: ClassVar[Lifecycle] = LEASE

    run = TenantForeignKey("runs.Run", related_name="+")
    step = TenantForeignKey("runs.Step", related_name="+")
    attempt = TenantForeignKey("runs.Attempt", related_name="leases")
    worker_id = models.UUIDField()
    holder = models.CharField(max_length=255)
    worker_name = models.CharField(max_length=64)
    fencing_token = models.BigIntegerField()
    offered_at = models.DateTimeField()

    state = FSMField(default=LeaseState.OFFERED, choices=LeaseState.choices, protected=True, editable=False)
    expires_at = models.DateTimeField()
    acquired_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)

    used_up: bool
    """`USED`, of rows that were asked for with it."""

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint("fencing_token", name="lease_token_once"),
            models.UniqueConstraint(
                "attempt", condition=Q(state__in=CURRENT), name="lease_one_current_per_attempt"
            ),
            models.CheckConstraint(condition=in_check("state", LeaseState.values), name="lease_state_known"),
            models.CheckConstraint(
                condition=Q(state__in=CURRENT, closed_at__isnull=True)
                | Q(state__in=sorted(LEASE_TERMINAL), closed_at__isnull=False),
                name="lease_closed_at_its_end",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[S.HELD, S.RELEASED, S.SETTLED], acquired_at__isnull=False)
                | Q(state__in=[S.OFFERED, S.REVOKED], acquired_at__isnull=True)
                | Q(state=S.EXPIRED),
                name="lease_held_since",
            ),
        ]
        indexes: ClassVar[list[Any]] = [
            models.Index(fields=["expires_at", "id"], condition=Q(state__in=CURRENT), name="lease_due"),
            models.Index(fields=["worker_id"], condition=Q(state__in=CURRENT), name="lease_of_worker"),
            models.Index(fields=["attempt", "fencing_token"], name="lease_by_attempt"),
            models.Index(fields=["run"], name="lease_by_run"),
        ]

    def __str__(self) -> str:
        return f"{self.worker_name} under {self.fencing_token}"

    @property
    def stream(self) -> UUID:
        """The chain of its run."""
        return self.run_id

    @property
    def project_id(self) -> UUID:
        """For the references of its events."""
        return self.run.project_id

    @property
    def token_words(self) -> str:
        """The token as people compare it: restore epoch and number."""
        return f"{self.fencing_token >> 40}·{self.fencing_token & (1 << 40) - 1}"

    @property
    def is_current(self) -> bool:
        return self.state in LEASE_CURRENT

    @transition(field=state, source=S.OFFERED, target=S.HELD)
    def acquire(self, *, at: datetime, expires_at: datetime) -> None:
        self.acquired_at, self.expires_at = at, expires_at

    @transition(field=state, source=S.HELD, target=S.RELEASED)
    def release(self, *, at: datetime) -> None:
        self.closed_at = at

    @transition(field=state, source=S.HELD, target=S.SETTLED)
    def settle(self, *, at: datetime) -> None:
        self.closed_at = at

    @transition(field=state, source=CURRENT, target=S.EXPIRED)
    def expire(self, *, at: datetime) -> None:
        self.closed_at = at

    @transition(field=state, source=S.OFFERED, target=S.REVOKED)
    def revoke(self, *, at: datetime) -> None:
        self.closed_at = at
