"""What is known about the evidence itself: what retention has removed, and what verifications have found."""

from typing import ClassVar

from django.db import models

from factory.kernel.models.base import TenantModel, uuid_key


class Purge(TenantModel):
    """That the entries of one stream up to `sequence` were removed because their time was over.

    Written by the retention role alone, one record for each stream and kind, hash-chained in the order of
    `number`. `hash` is that of the last removed entry, from which the chain goes on; `states` holds the last
    journaled state of each entity whose entries are gone. Both are what keeps a purge apart from tampering.
    """

    id = uuid_key()
    number = models.BigIntegerField(unique=True)
    stream_id = models.UUIDField()
    kind = models.CharField(max_length=8)
    sequence = models.BigIntegerField()
    hash = models.CharField(max_length=80)
    rows = models.IntegerField()
    newest_at = models.DateTimeField()
    states = models.JSONField(default=dict)
    retention_days = models.IntegerField()
    purged_at = models.DateTimeField()
    prev_hash = models.CharField(max_length=80)
    record_hash = models.CharField(max_length=80)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint("stream_id", "kind", "sequence", name="purge_once"),
            models.CheckConstraint(
                condition=models.Q(kind__in=["journal", "audit", "outbox"]), name="purge_kind_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.stream_id} up to {self.sequence}"


class Verification(models.Model):
    """That the auditor looked at everything, and what came of it. It belongs to the platform, to no tenant.

    `walls` are the violations of no tenant, `unchecked` the rules that could not be evaluated, and why.
    """

    id = uuid_key()
    started_at = models.DateTimeField()
    seconds = models.FloatField()
    rules = models.IntegerField()
    violations = models.IntegerField()
    walls = models.JSONField(default=list)
    unchecked = models.JSONField(default=list)
    anchors = models.TextField(default="")

    def __str__(self) -> str:
        return f"{self.started_at:%Y-%m-%d %H:%M}: {self.violations} violations"


class Finding(TenantModel):
    """One violation that a verification found in this tenant."""

    id = uuid_key()
    verification_id = models.UUIDField()
    code = models.CharField(max_length=8)
    subject = models.CharField(max_length=255)
    detail = models.TextField()
    found_at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["tenant_id", "-found_at"], name="finding_newest"),
            models.Index(fields=["tenant_id", "verification_id"], name="finding_by_verification"),
        ]

    def __str__(self) -> str:
        return f"{self.code} {self.subject}"
