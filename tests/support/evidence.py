"""What a command left behind, read back as the tenant, for exact assertions."""

from typing import Any
from uuid import UUID

from django.db import connection, transaction

from factory.evidence import schema_guards
from factory.evidence.auditor import Violation, invariants
from factory.kernel.context import Context
from factory.kernel.models import AuditEntry, JournalEntry, OutboxEvent
from factory.kernel.tenancy import reading


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
    """Everything that the auditor has against this tenant.

    Asked as the tenant, who sees nothing else: what other tests left in the database costs no time, and every
    rule about rows sees the same rows of this one. Rules about the schema have tests of their own.
    """
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT set_config('factory.tenant', %s, true)", [tenant_id])
        return [
            violation
            for rule in invariants()
            if rule.module != schema_guards.__name__
            for violation in rule.check(cursor)
            if violation.tenant_id == tenant_id
        ]
