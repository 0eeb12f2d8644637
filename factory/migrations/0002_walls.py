"""The kernel's walls: functions and default grants first, then its own tables."""

from django.db import migrations

from factory.kernel.migration_operations import (
    AppendOnly,
    JournalRequired,
    KernelFunctions,
    MutableColumns,
    Retention,
    TenantWalls,
)

DELIVERY = tuple(
    f"{prefix}_{name}"
    for prefix in ("handle", "stream")
    for name in ("attempts", "due_at", "set_aside_at", "error")
)


class Migration(migrations.Migration):
    dependencies = [("factory", "0001_initial")]
    operations = [
        KernelFunctions(),
        TenantWalls("ChainHead"),
        MutableColumns("ChainHead", columns=("sequence", "hash")),
        TenantWalls("JournalEntry"),
        AppendOnly("JournalEntry", purgeable=True),
        Retention("JournalEntry", removes=True),
        TenantWalls("AuditEntry"),
        AppendOnly("AuditEntry", purgeable=True),
        Retention("AuditEntry", removes=True),
        TenantWalls(
            "OutboxEvent",
            scan=(
                "id", "tenant_id", "stream_id", "sequence", "position", "lane", "occurred_at", "handled_at",
                "handle_due_at", "handle_set_aside_at", "streamed_at", "stream_due_at", "stream_set_aside_at",
                "transaction_id", "topic", "project_id", "run_id",
            ),
        ),
        MutableColumns("OutboxEvent", columns=("handled_at", "streamed_at", *DELIVERY)),
        Retention("OutboxEvent", removes=True),
        TenantWalls("WebhookSubscription", scan=("id", "tenant_id", "state", "resume_at", "failures")),
        MutableColumns(
            "WebhookSubscription",
            columns=(
                "consumer", "description", "url", "topics", "state", "disabled_reason", "secret",
                "previous_secret", "previous_until", "version", "updated_at", "failures", "resume_at",
                "succeeded_at", "failed_at", "last_error",
            ),
        ),
        JournalRequired("WebhookSubscription"),
        TenantWalls(
            "WebhookDelivery",
            scan=(
                "id", "tenant_id", "subscription_id", "stream_id", "sequence", "position", "created_at",
                "due_at", "claimed_until", "delivered_at", "set_aside_at",
            ),
        ),
        MutableColumns(
            "WebhookDelivery",
            columns=(
                "attempts", "due_at", "claimed_until", "delivered_at", "set_aside_at", "last_status", "error",
            ),
        ),
        Retention("WebhookSubscription", reads=("id", "state")),
        Retention("WebhookDelivery", removes=True),
        TenantWalls("IdempotencyRecord"),
        MutableColumns("IdempotencyRecord", columns=("result",)),
        Retention("IdempotencyRecord", removes=True),
        TenantWalls("Purge"),
        AppendOnly("Purge", added_by="retention"),
        AppendOnly("Verification"),
        TenantWalls("Finding"),
        AppendOnly("Finding"),
    ]  # fmt: skip
