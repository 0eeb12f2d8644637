"""The evidence: journal, audit log, outbox, and the records that make commands happen once."""

from typing import ClassVar, Final

from django.db import models

from factory.kernel.colours import Colour, ColouredChoices
from factory.kernel.models.base import TenantModel, uuid_key

OFTEN: Final = ("run", "step", "attempt", "lease", "reservation", "approval")
"""Kinds of things whose changes are nearly all of the journal: what follows work, not what people set up."""
MOST_AUDIT_SUBJECT: Final = 320
"""The longest name of anything, which is a token's subject or id, behind the word for its kind."""
SELDOM: Final = ~models.Q(entity__in=OFTEN)


class ChainHead(TenantModel):
    """Say where a hash chain ends: the lock and the counter of one stream."""

    stream_id = models.UUIDField(primary_key=True, editable=False)
    sequence = models.BigIntegerField()
    hash = models.CharField(max_length=80, default="")

    def __str__(self) -> str:
        return f"{self.stream_id} at {self.sequence}"


class JournalEntry(TenantModel):
    """One transition of one entity; append-only, gapless and chained within its stream.

    `events` names each event that the transition told, with the hash of its data, so that the
    chain covers the outbox as well. It holds ids and codes, never the content of the work.
    """

    id = uuid_key()
    stream_id = models.UUIDField()
    sequence = models.BigIntegerField()
    entity = models.CharField(max_length=32)
    entity_id = models.UUIDField()
    cause = models.CharField(max_length=64)
    from_state = models.CharField(max_length=32)
    to_state = models.CharField(max_length=32)
    actor = models.CharField(max_length=255)
    actor_kind = models.CharField(max_length=16)
    operation = models.CharField(max_length=64)
    correlation_id = models.UUIDField()
    detail = models.JSONField(default=dict)
    events = models.JSONField(default=list)
    occurred_at = models.DateTimeField()
    prev_hash = models.CharField(max_length=80)
    hash = models.CharField(max_length=80)
    transaction_id = models.BigIntegerField()

    class Meta:
        verbose_name_plural = "journal entries"
        constraints: ClassVar = [
            models.UniqueConstraint("stream_id", "sequence", name="journal_sequence_once"),
            models.CheckConstraint(condition=models.Q(sequence__gte=1), name="journal_sequence_from_1"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["entity_id", "transaction_id"], name="journal_entity_tx"),
            models.Index(fields=["tenant_id", "occurred_at"], name="journal_by_time"),
            models.Index(fields=["tenant_id", "entity", "to_state", "occurred_at"], name="journal_by_kind"),
            models.Index(
                fields=["tenant_id", "entity", "occurred_at"], condition=SELDOM, name="journal_seldom_by_kind"
            ),
            models.Index(
                fields=["tenant_id", "to_state", "occurred_at"],
                condition=SELDOM,
                name="journal_seldom_by_state",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.sequence} {self.entity} {self.from_state or '–'} → {self.to_state}"


class AuditOutcome(ColouredChoices):
    DONE = "done", Colour.GOOD
    REFUSED = "refused", Colour.BAD
    NOTED = "noted", Colour.WAIT


class AuditEntry(TenantModel):
    """Record who did or tried what: one row a command, and one for each refusal that is evidence."""

    id = uuid_key()
    stream_id = models.UUIDField()
    sequence = models.BigIntegerField()
    project_id = models.UUIDField(null=True)
    action = models.CharField(max_length=64)
    subject = models.CharField(max_length=MOST_AUDIT_SUBJECT)
    outcome = models.CharField(max_length=16)
    reason = models.TextField(default="")
    detail = models.JSONField(default=dict)
    actor = models.CharField(max_length=255)
    actor_kind = models.CharField(max_length=16)
    person = models.CharField(max_length=255, default="")
    channel = models.CharField(max_length=16)
    correlation_id = models.UUIDField()
    occurred_at = models.DateTimeField()
    prev_hash = models.CharField(max_length=80)
    hash = models.CharField(max_length=80)

    class Meta:
        verbose_name_plural = "audit entries"
        constraints: ClassVar = [
            models.UniqueConstraint("stream_id", "sequence", name="audit_sequence_once"),
            models.CheckConstraint(
                condition=models.Q(outcome__in=AuditOutcome.values), name="audit_outcome_known"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant_id", "occurred_at"], name="audit_by_time"),
            models.Index(fields=["tenant_id", "subject"], name="audit_by_subject"),
            models.Index(fields=["tenant_id", "project_id", "occurred_at"], name="audit_by_project"),
            models.Index(fields=["tenant_id", "actor", "occurred_at"], name="audit_by_actor"),
            models.Index(fields=["tenant_id", "action", "occurred_at"], name="audit_by_action"),
            models.Index(fields=["tenant_id", "channel", "occurred_at"], name="audit_by_channel"),
            models.Index(fields=["tenant_id", "actor", "channel", "occurred_at"], name="audit_by_actor_way"),
            models.Index(
                fields=["tenant_id", "outcome", "occurred_at"],
                condition=~models.Q(outcome="done"),
                name="audit_not_done",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.subject}: {self.outcome}"


class OutboxEvent(TenantModel):
    """A committed event on its way to in-process handlers and to the streams.

    The two destinations advance separately, so that a broker that is down holds up no run.
    """

    id = uuid_key()
    stream_id = models.UUIDField()
    sequence = models.BigIntegerField()
    position = models.SmallIntegerField()
    lane = models.SmallIntegerField()
    topic = models.CharField(max_length=120)
    schema_version = models.SmallIntegerField()
    project_id = models.UUIDField(null=True)
    run_id = models.UUIDField(null=True)
    step_id = models.UUIDField(null=True)
    attempt_id = models.UUIDField(null=True)
    correlation_id = models.UUIDField()
    causation_id = models.UUIDField(null=True)
    traceparent = models.CharField(max_length=64, default="")
    payload = models.JSONField()
    occurred_at = models.DateTimeField()
    # Who follows the outbox asks "which were not there when I last looked": only transactions tell.
    transaction_id = models.BigIntegerField()

    handled_at = models.DateTimeField(null=True)
    handle_attempts = models.SmallIntegerField(default=0)
    handle_due_at = models.DateTimeField(null=True)
    handle_set_aside_at = models.DateTimeField(null=True)
    handle_error = models.TextField(default="")
    streamed_at = models.DateTimeField(null=True)
    stream_attempts = models.SmallIntegerField(default=0)
    stream_due_at = models.DateTimeField(null=True)
    stream_set_aside_at = models.DateTimeField(null=True)
    stream_error = models.TextField(default="")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint("stream_id", "sequence", "position", name="outbox_position_once"),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["lane", "stream_id", "sequence", "position"],
                condition=models.Q(handled_at__isnull=True),
                name="outbox_unhandled",
            ),
            models.Index(
                fields=["lane", "stream_id", "sequence", "position"],
                condition=models.Q(streamed_at__isnull=True),
                name="outbox_unstreamed",
            ),
            models.Index(
                fields=["tenant_id", "occurred_at"],
                condition=models.Q(handled_at__isnull=True) | models.Q(streamed_at__isnull=True),
                name="outbox_waiting",
            ),
            models.Index(
                fields=["tenant_id", "stream_id"],
                condition=models.Q(handle_set_aside_at__isnull=False, handled_at__isnull=True)
                | models.Q(stream_set_aside_at__isnull=False, streamed_at__isnull=True),
                name="outbox_set_aside",
            ),
            models.Index(fields=["tenant_id", "occurred_at", "id"], name="outbox_by_time"),
            models.Index(fields=["tenant_id", "project_id", "occurred_at", "id"], name="outbox_by_project"),
            models.Index(fields=["tenant_id", "topic", "occurred_at"], name="outbox_by_topic"),
            models.Index(fields=["tenant_id", "run_id"], name="outbox_by_run"),
            models.Index(fields=["transaction_id"], name="outbox_by_transaction"),
        ]

    def __str__(self) -> str:
        return f"{self.topic} {self.id}"


class IdempotencyRecord(TenantModel):
    """That a command happened under this key: inserted first, in the transaction of its effect.

    A handler's inbox row is one too, with the event and the handler as its key.
    """

    id = models.BigAutoField(primary_key=True)
    scope = models.CharField(max_length=64)
    operation = models.CharField(max_length=64)
    key = models.CharField(max_length=255)
    request_hash = models.CharField(max_length=80)
    result = models.JSONField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint("tenant_id", "scope", "operation", "key", name="idempotency_once"),
        ]

    def __str__(self) -> str:
        return f"{self.operation} {self.key}"
