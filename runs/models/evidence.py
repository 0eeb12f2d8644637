"""What is written once: snapshots, cancellation intents, receipts, and how uncertain steps were settled."""

from typing import Any, ClassVar

from django.db import models

from factory.kernel.models.base import TenantForeignKey, TenantModel, in_check, uuid_key

KINDS = ("model", "tool", "effect")
RESOLUTIONS = ("effect-happened", "effect-did-not-happen", "give-up")
ACKNOWLEDGED = "acknowledged"
"""How any attention but an uncertain step is closed: a person has looked, and says what they found."""


class Snapshot(TenantModel):
    """The resolved input of one run: its input, its workflow's definition and every pin; append-only."""

    id = uuid_key()
    content = models.JSONField()
    hash = models.CharField(max_length=71)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.hash


class CancellationIntent(TenantModel):
    """That somebody asked a run to stop: who, why and when; append-only, and the first one stands."""

    id = uuid_key()
    run = TenantForeignKey("runs.Run", related_name="cancellation_intents")
    requested_by = models.CharField(max_length=255)
    reason = models.TextField()
    requested_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint("run", name="cancellation_first_one_stands"),
            models.CheckConstraint(condition=~models.Q(reason=""), name="cancellation_has_a_reason"),
        ]

    def __str__(self) -> str:
        return f"{self.requested_by}: {self.reason}"


class Receipt(TenantModel):
    """Evidence of a model call, a tool call or an external effect, as a holder reported it; append-only.

    `superseded` says that its lease was not current any more: it was paid for all the same.
    """

    id = uuid_key()
    run = TenantForeignKey("runs.Run", related_name="+")
    step = TenantForeignKey("runs.Step", related_name="+")
    attempt = TenantForeignKey("runs.Attempt", related_name="receipts")
    lease = TenantForeignKey("runs.Lease", related_name="+")
    fencing_token = models.BigIntegerField()
    receipt_id = models.CharField(max_length=255)
    kind = models.CharField(max_length=8)
    provider = models.CharField(max_length=200)
    name = models.CharField(max_length=200)
    content = models.JSONField()
    approval_id = models.UUIDField(null=True)
    proposal_hash = models.CharField(max_length=71, blank=True)
    superseded = models.BooleanField(default=False)
    occurred_at = models.DateTimeField()
    recorded_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint("tenant_id", "receipt_id", "run", "provider", name="receipt_once_a_run"),
            models.CheckConstraint(condition=in_check("kind", KINDS), name="receipt_kind_known"),
        ]
        indexes: ClassVar[list[Any]] = [
            models.Index(fields=["attempt", "kind"], name="receipt_by_attempt"),
            models.Index(fields=["run"], name="receipt_by_run"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class RefusedReceipt(TenantModel):
    """A receipt that was not taken, kept for a person, because a call may have been paid; append-only.

    `content` is the JSON text that came, whatever it is. Of a `receipt-conflict`, `recorded` is the receipt
    that stands under the same identity. The same refusal of a run is kept once.
    """

    id = uuid_key()
    run = TenantForeignKey("runs.Run", related_name="+")
    step = TenantForeignKey("runs.Step", related_name="+")
    attempt = TenantForeignKey("runs.Attempt", related_name="+")
    lease = TenantForeignKey("runs.Lease", related_name="+")
    recorded = TenantForeignKey("runs.Receipt", null=True, related_name="+")
    receipt_id = models.CharField(max_length=255, blank=True)
    kind = models.CharField(max_length=16, blank=True)
    provider = models.CharField(max_length=200, blank=True)
    name = models.CharField(max_length=200, blank=True)
    code = models.CharField(max_length=32)
    detail = models.TextField()
    content = models.TextField()
    content_hash = models.CharField(max_length=71)
    refused_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(
                "tenant_id", "run", "code", "content_hash", name="refused_receipt_kept_once"
            ),
            models.CheckConstraint(
                condition=~models.Q(code="receipt-conflict") | models.Q(recorded__isnull=False),
                name="refused_receipt_conflicts_with_one",
            ),
        ]
        indexes: ClassVar[list[Any]] = [
            models.Index(fields=["tenant_id", "-refused_at", "-id"], name="refused_newest"),
            models.Index(fields=["tenant_id", "code", "-refused_at"], name="refused_by_code"),
            models.Index(fields=["tenant_id", "receipt_id"], name="refused_by_receipt"),
            models.Index(fields=["tenant_id", "name"], name="refused_by_name"),
        ]

    def __str__(self) -> str:
        return f"{self.code}: {self.receipt_id}"


class Artifact(TenantModel):
    """Keep where an attempt left something in a store of its own, its hash and its size; append-only.

    What it holds never comes here.
    """

    id = uuid_key()
    run = TenantForeignKey("runs.Run", related_name="+")
    step = TenantForeignKey("runs.Step", related_name="+")
    attempt = TenantForeignKey("runs.Attempt", related_name="artifacts")
    uri = models.CharField(max_length=2048)
    hash = models.CharField(max_length=71)
    size = models.BigIntegerField()
    recorded_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint("attempt", "uri", name="artifact_once_an_attempt"),
            models.CheckConstraint(condition=models.Q(size__gte=0), name="artifact_has_a_size"),
        ]
        indexes: ClassVar[list[Any]] = [models.Index(fields=["run"], name="artifact_by_run")]

    def __str__(self) -> str:
        return self.uri


class Resolution(TenantModel):
    """Keep what an Operator found out about what they were asked to look at; append-only."""

    id = uuid_key()
    run = TenantForeignKey("runs.Run", related_name="+")
    step = TenantForeignKey("runs.Step", related_name="resolutions")
    attempt = TenantForeignKey("runs.Attempt", related_name="+")
    resolution = models.CharField(max_length=24)
    evidence = models.TextField()
    resolved_by = models.CharField(max_length=255)
    resolved_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(
                fields=["attempt"],
                condition=models.Q(resolution__in=RESOLUTIONS),
                name="resolution_once_per_attempt",
            ),
            models.CheckConstraint(
                condition=in_check("resolution", (*RESOLUTIONS, ACKNOWLEDGED)), name="resolution_known"
            ),
            models.CheckConstraint(condition=~models.Q(evidence=""), name="resolution_has_evidence"),
        ]
        indexes: ClassVar[list[Any]] = [models.Index(fields=["run"], name="resolution_by_run")]

    def __str__(self) -> str:
        return self.resolution


class Freeze(TenantModel):
    """That a run stands still because the auditor found something about it, until somebody lifts that."""

    id = uuid_key()
    run = TenantForeignKey("runs.Run", related_name="freezes")
    findings = models.JSONField()
    frozen_at = models.DateTimeField()
    lifted_at = models.DateTimeField(null=True)
    lifted_by = models.CharField(max_length=255, blank=True)
    lift_reason = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(
                "run", condition=models.Q(lifted_at__isnull=True), name="freeze_one_at_a_time"
            ),
            models.CheckConstraint(
                condition=models.Q(lifted_at__isnull=True, lifted_by="", lift_reason="")
                | (models.Q(lifted_at__isnull=False) & ~models.Q(lifted_by="") & ~models.Q(lift_reason="")),
                name="freeze_lifted_by_somebody_for_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"frozen at {self.frozen_at:%Y-%m-%d %H:%M}"
