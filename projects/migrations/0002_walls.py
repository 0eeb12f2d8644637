"""The walls around this app's tables."""

from django.db import migrations

from factory.kernel.migration_operations import JournalRequired, MutableColumns, TenantWalls

# By how much a project's suspensions had, at a moment, put off what began at `since` and was due at `due`.
# One after the other, because what was over before a suspension began is not put off by it.
PAUSED = """
CREATE FUNCTION projects_paused(project uuid, since timestamptz, due timestamptz, at timestamptz)
RETURNS interval LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    pause record;
    put_off interval := interval '0';
BEGIN
    FOR pause IN
        SELECT greatest(s.suspended_at, since) AS began, least(coalesce(s.resumed_at, at), at) AS ended
        FROM projects_suspension s
        WHERE s.project_id = project AND s.suspended_at < at
          AND (s.resumed_at IS NULL OR s.resumed_at > since)
        ORDER BY s.suspended_at
    LOOP
        EXIT WHEN pause.began >= due + put_off;
        put_off := put_off + greatest(pause.ended - pause.began, interval '0');
    END LOOP;
    RETURN put_off;
END
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
