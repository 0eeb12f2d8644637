"""What a command left behind, read back as the tenant, for exact assertions."""

from typing import Any
from uuid import UUID

from factory.auditing import Violation, audit_all
from factory.context import Context
from factory.models import AuditEntry, JournalEntry, OutboxEvent
from factory.tenancy import reading


def journal(ctx: Context, entity_id: UUID) -> list[tuple[str, str, str]]:
    """(from, to, cause) of each transition of one entity, oldest first."""
    with reading(ctx):
        rows = JournalEntry.objects.filter(entity_id=entity_id).order_by("sequence")
        return [(row.from_state, row.to_state, row.cause) for row in rows]


def details(ctx: Context, entity_id: UUID) -> list[dict[str, Any]]:
    """The detail of each transition of one entity, oldest first."""
    with reading(ctx):
        rows = JournalEntry.objects.filter(entity_id=entity_id).order_by("sequence")
        return [row.detail for row in rows]


def outbox(ctx: Context, stream_id: UUID) -> list[tuple[str, dict[str, Any]]]:
    """(topic, data) of each event of a stream, in order."""
    with reading(ctx):
        rows = OutboxEvent.objects.filter(stream_id=stream_id).order_by("sequence", "position")
        return [(row.topic, row.payload) for row in rows]


def audits(ctx: Context, action: str) -> list[AuditEntry]:
    """The audit entries of one action in the tenant, oldest first."""
    with reading(ctx):
        return list(AuditEntry.objects.filter(action=action).order_by("occurred_at", "id"))


def counts(ctx: Context) -> tuple[int, int, int]:
    """How much journal, outbox and audit log the tenant has: to show that a refusal added none."""
    with reading(ctx):
        return JournalEntry.objects.count(), OutboxEvent.objects.count(), AuditEntry.objects.count()


def violations(tenant_id: str) -> list[Violation]:
    """Everything that the auditor has against this tenant."""
    return [found for found in audit_all() if found.tenant_id == tenant_id]
