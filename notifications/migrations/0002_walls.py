"""The walls of notifications: whom a message is for, and what about, never changes; how it fares does."""

from django.db import migrations

from factory.kernel.migration_operations import MutableColumns, Retention, TenantWalls


class Migration(migrations.Migration):
    dependencies = [
        ("notifications", "0001_initial"),
        ("approvals", "0002_walls"),
        ("projects", "0002_walls"),
        ("factory", "0002_walls"),
    ]

    operations = [
        TenantWalls("Preference"),
        MutableColumns("Preference", columns=("kinds", "version", "updated_at")),
        TenantWalls("Channel"),
        MutableColumns(
            "Channel", columns=("name", "address", "kinds", "version", "updated_at", "removed_at")
        ),
        TenantWalls("Notice", scan=("id", "tenant_id", "remind_at", "reminded_at")),
        MutableColumns("Notice", columns=("reminded_at",)),
        TenantWalls(
            "Notification",
            scan=(
                "id", "tenant_id", "created_at", "due_at", "claimed_until", "sent_at", "set_aside_at",
                "dropped_at",
            ),
        ),
        MutableColumns(
            "Notification",
            columns=(
                "attempts", "due_at", "claimed_until", "sent_at", "set_aside_at", "dropped_at", "error",
            ),
        ),
        Retention("Notification", removes=True),
    ]  # fmt: skip
