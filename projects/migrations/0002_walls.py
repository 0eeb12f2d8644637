"""The walls around this app's tables."""

from django.db import migrations

from factory.database import JournalRequired, MutableColumns, TenantWalls


class Migration(migrations.Migration):
    dependencies = [("factory", "0002_walls"), ("projects", "0001_initial")]
    operations = [
        TenantWalls("Tenant"),
        MutableColumns("Tenant", columns=("name",)),
        TenantWalls("Project", scan=("id", "tenant_id", "state")),
        MutableColumns(
            "Project", columns=("name", "state", "suspended_at", "suspension_reason", "version", "updated_at")
        ),
        JournalRequired("Project"),
        TenantWalls("Environment"),
        MutableColumns("Environment", columns=("name",)),
        TenantWalls("Membership", scan=("id", "tenant_id", "project_id", "subject", "roles", "state")),
        MutableColumns(
            "Membership", columns=("roles", "grants", "state", "removed_at", "version", "updated_at")
        ),
        JournalRequired("Membership"),
        TenantWalls("ServiceAccount"),
        MutableColumns("ServiceAccount", columns=("name", "state", "revoked_at", "version", "updated_at")),
        JournalRequired("ServiceAccount"),
    ]
