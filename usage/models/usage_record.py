"""Usage: what receipts say was used, and what it cost."""

from datetime import datetime
from decimal import Decimal
from typing import ClassVar
from uuid import UUID

from django.db import models
from django.db.models import F, Q
from django_fsm import FSMField, transition

from factory.kernel.models.base import Journaled, TenantForeignKey, in_check
from usage.models.fields import money_field
from usage.models.pricing import PricingRevision
from usage.states import USAGE, ReceiptKind, UsageState


class UsageRecord(Journaled):
    """One receipt of a call, priced once. It is known by its run, its provider and its id there.

    `quantities` maps each unit to its exact decimal text, `prices` the same units to the price that was
    used; a model call has several units and one cost. `priced_at` is when the call happened as far as we
    believe it: within the time from its attempt's dispatch to its settlement. What was unknown then can be
    settled later by a person, once: `settled_by` says who, why, and by which evidence.
    """

    lifecycle = USAGE

    state = FSMField(protected=True, editable=False)
    receipt_id = models.CharField(max_length=255)
    run_id = models.UUIDField()
    project = TenantForeignKey("projects.Project", related_name="+")
    step_id = models.UUIDField()
    attempt_id = models.UUIDField()
    agent_id = models.CharField(max_length=255, blank=True, default="")
    kind = models.CharField(max_length=16)
    provider = models.CharField(max_length=200)
    name = models.CharField(max_length=200)
    quantities = models.JSONField(null=True, blank=True)
    prices = models.JSONField(default=dict, blank=True)
    cost = money_field(null=True, blank=True)
    pricing_revision = TenantForeignKey(PricingRevision, null=True, blank=True, related_name="+")
    reason = models.TextField(blank=True, default="")
    occurred_at = models.DateTimeField()
    priced_at = models.DateTimeField()
    recorded_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True, blank=True)
    settled_by = models.CharField(max_length=255, blank=True, default="", db_default="")
    settled_reason = models.TextField(blank=True, default="", db_default="")
    settled_evidence = models.TextField(blank=True, default="", db_default="")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant_id", "receipt_id", "run_id", "provider"],
                name="usage_record_once_a_run",
            ),
            models.CheckConstraint(condition=in_check("state", list(UsageState)), name="usage_record_state"),
            models.CheckConstraint(condition=in_check("kind", list(ReceiptKind)), name="usage_record_kind"),
            models.CheckConstraint(
                condition=(Q(state=UsageState.UNCERTAIN, cost=None) & ~Q(reason=""))
                | (Q(cost__gte=0) & ~Q(state=UsageState.UNCERTAIN)),
                name="usage_record_unknown_is_not_zero",
            ),
            models.CheckConstraint(
                condition=Q(settled_at=None, settled_by="")
                | (Q(settled_at__gte=F("recorded_at"), state=UsageState.CONFIRMED) & ~Q(settled_by="")),
                name="usage_record_settled",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant_id", "run_id"], name="usage_record_by_run"),
            models.Index(fields=["tenant_id", "priced_at"], name="usage_record_by_time"),
            models.Index(fields=["tenant_id", "project", "priced_at"], name="usage_record_by_project"),
            models.Index(fields=["tenant_id", "name", "priced_at"], name="usage_record_by_name"),
            models.Index(fields=["tenant_id", "state", "priced_at"], name="usage_record_by_state"),
            models.Index(fields=["tenant_id", "kind", "priced_at"], name="usage_record_by_kind"),
        ]

    def __str__(self) -> str:
        return f"{self.provider}/{self.name} {self.receipt_id}"

    @property
    def stream(self) -> UUID:
        return self.run_id

    @transition(field=state, source=UsageState.UNCERTAIN, target=UsageState.CONFIRMED)
    def settle(self, *, cost: Decimal, at: datetime, by: str, reason: str, evidence: str) -> None:
        """Confirm it at what a person says that it cost."""
        self.cost = cost
        self.settled_at, self.settled_by = at, by
        self.settled_reason, self.settled_evidence = reason, evidence
