"""The walls around this app's tables."""

from django.db import migrations

from factory.database import JournalRequired, MutableColumns, TenantWalls

# How long a project was suspended within [since, until): what ran out by the clock has so much longer.
PAUSED = """
CREATE FUNCTION projects_paused(project uuid, since timestamptz, until timestamptz) RETURNS interval
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT coalesce(sum(least(coalesce(s.resumed_at, until), until) - greatest(s.suspended_at, since)),
                    interval '0')
    FROM projects_suspension s
    WHERE s.project_id = project AND s.suspended_at < until
      AND (s.resumed_at IS NULL OR s.resumed_at > since)
$$
"""


class Migration(migrations.Migration):
    dependencies = [("factory", "0002_walls"), ("projects", "0001_initial")]
    operations = [
        TenantWalls("Tenant"),
        MutableColumns("Tenant", columns=("name",)),
        TenantWalls("Project", scan=("id", "tenant_id", "state", "killing_since")),
        MutableColumns(
            "Project",
            columns=(
                "name",
                "state",
                "suspended_at",
                "suspension_reason",
                "killing_since",
                "killed_by",
                "kill_reason",
                "version",
                "updated_at",
            ),
        ),
        JournalRequired("Project"),
        TenantWalls("Suspension"),
        MutableColumns("Suspension", columns=("resumed_at",)),
        migrations.RunSQL(PAUSED, "DROP FUNCTION projects_paused"),
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
        TenantWalls("Delegation", scan=("id", "tenant_id", "state", "expires_at")),
        MutableColumns("Delegation", columns=("state", "ended_at", "ended_by", "version")),
        JournalRequired("Delegation"),
    ]
