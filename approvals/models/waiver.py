"""A waiver: the approval, given in advance, of shared writes by one release of one workflow."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import ClassVar
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django_fsm import FSMField, transition

from approvals.states import WAIVABLE, WAIVER, WaiverState
from factory.kernel.lifecycle import Lifecycle
from factory.kernel.models.base import Journaled, TenantForeignKey, in_check

MAX_REASON = 2000
LONGEST_WAIVER = timedelta(days=30)
"""What is needed for longer is asked for again: nobody remembers for ever what they once allowed."""

S = WaiverState


class Waiver(Journaled):
    """Runs of one template, under one release, may do shared writes in named environments, until a moment.

    Everything but its standing is fixed when it is asked for, and is what its approval was about. It never
    serves who asked for it (`requested_by` and their person), nor anybody in `deciders`.
    """

    lifecycle: ClassVar[Lifecycle] = WAIVER

    project = TenantForeignKey("projects.Project", related_name="+")
    template_id = models.UUIDField()
    template_name = models.CharField(max_length=63)
    workflow_id = models.CharField(max_length=63)
    release_id = models.UUIDField()
    release_name = models.CharField(max_length=140)
    action_class = models.CharField(max_length=16, default=WAIVABLE)
    environment_ids = ArrayField(models.UUIDField())
    reason = models.CharField(max_length=MAX_REASON)
    requested_by = models.CharField(max_length=255)
    requester_person = models.CharField(max_length=255)
    author_person = models.CharField(max_length=255)
    requested_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    state = FSMField(default=S.REQUESTED, choices=S.choices, protected=True, editable=False)
    version = models.BigIntegerField(default=0)
    approval = TenantForeignKey("approvals.ApprovalRequest", related_name="+")
    decided_by = models.CharField(max_length=255, blank=True)
    decided_person = models.CharField(max_length=255, blank=True)
    decided_at = models.DateTimeField(null=True)
    deciders = ArrayField(models.CharField(max_length=255), default=list)
    ended_at = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=255, blank=True)
    end_reason = models.CharField(max_length=MAX_REASON, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=in_check("state", S.values), name="waiver_state_known"),
            models.CheckConstraint(condition=Q(action_class=WAIVABLE), name="waiver_of_shared_writes_only"),
            models.CheckConstraint(condition=Q(environment_ids__len__gt=0), name="waiver_names_environments"),
            models.CheckConstraint(
                condition=Q(expires_at__gt=F("requested_at")), name="waiver_ends_after_it_was_asked_for"
            ),
            models.CheckConstraint(
                condition=(
                    Q(state__in=[S.REQUESTED, S.REFUSED], decided_at__isnull=True, decided_by="")
                    & Q(deciders__len=0)
                )
                | (
                    Q(state__in=[S.ACTIVE, S.EXPIRED, S.REVOKED], decided_at__isnull=False)
                    & Q(deciders__len__gt=0, decided_at__lt=F("expires_at"))
                    & ~Q(decided_by="")
                    & ~Q(decided_person="")
                )
                | Q(state=S.REVOKED, decided_at__isnull=True, decided_by="", deciders__len=0),
                name="waiver_decided_by_somebody",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[S.REQUESTED, S.ACTIVE], ended_at__isnull=True, ended_by="")
                | (Q(state__in=[S.REFUSED, S.EXPIRED, S.REVOKED], ended_at__isnull=False) & ~Q(ended_by="")),
                name="waiver_ended_since_and_by",
            ),
            models.CheckConstraint(
                condition=~Q(state=S.REVOKED) | ~Q(end_reason=""), name="waiver_revoked_for_a_reason"
            ),
            models.CheckConstraint(
                condition=~Q(state=S.EXPIRED) | Q(ended_at__gte=F("expires_at")),
                name="waiver_expired_in_time",
            ),
            models.CheckConstraint(
                condition=Q(decided_person="")
                | (~Q(decided_person=F("requester_person")) & ~Q(decided_person=F("author_person"))),
                name="waiver_duties_separate",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant_id", "requested_at", "id"], name="waiver_by_time"),
            models.Index(
                fields=["template_id", "release_id"], condition=Q(state=S.ACTIVE), name="waiver_in_force"
            ),
            models.Index(fields=["expires_at", "id"], condition=Q(state=S.ACTIVE), name="waiver_due"),
            models.Index(
                fields=["release_id"],
                condition=Q(state__in=[S.REQUESTED, S.ACTIVE]),
                name="waiver_open_of_release",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.template_name} with {self.release_name}"

    def in_force(self, at: datetime) -> bool:
        """Half-open: `expires_at` itself is already too late, whether or not it has been recorded."""
        return bool(self.state == S.ACTIVE and at < self.expires_at)

    @property
    def end(self) -> datetime:
        """Return when it ends, or has ended."""
        return min(self.expires_at, self.ended_at) if self.ended_at else self.expires_at

    @property
    def never_for(self) -> frozenset[str]:
        """Whose runs it never serves: who asked for it and who decided it, accounts and people alike."""
        return frozenset({self.requested_by, self.requester_person, *self.deciders})

    @transition(field=state, source=S.REQUESTED, target=S.REQUESTED)
    def renew(self, *, approval_id: UUID) -> None:
        self.approval_id = approval_id

    @transition(field=state, source=S.REQUESTED, target=S.ACTIVE)
    def activate(self, *, at: datetime, by: str, person: str, deciders: Sequence[str]) -> None:
        self.decided_at, self.decided_by, self.decided_person = at, by, person
        self.deciders = sorted(deciders)

    @transition(field=state, source=S.REQUESTED, target=S.REFUSED)
    def refuse(self, *, at: datetime, by: str, reason: str) -> None:
        self.ended_at, self.ended_by, self.end_reason = at, by, reason

    @transition(field=state, source=[S.REQUESTED, S.ACTIVE], target=S.REVOKED)
    def revoke(self, *, at: datetime, by: str, reason: str) -> None:
        self.ended_at, self.ended_by, self.end_reason = at, by, reason

    @transition(field=state, source=S.ACTIVE, target=S.EXPIRED)
    def expire(self, *, at: datetime, by: str) -> None:
        self.ended_at, self.ended_by = at, by
