"""A budget can open the next month by itself; that none covers a month is known in good time."""

from django.db import migrations, models

from factory.kernel.migration_operations import ScanColumns, WiderColumns

# The owner has no way past the wall of its own table but to open it for the moment of the migration.
DATE_OPEN_MONTHS = """
ALTER TABLE usage_budget NO FORCE ROW LEVEL SECURITY;
UPDATE usage_budget SET next_due_at = (period_end - 7)::timestamp AT TIME ZONE 'UTC'
WHERE period_end > (clock_timestamp() AT TIME ZONE 'UTC')::date;
ALTER TABLE usage_budget FORCE ROW LEVEL SECURITY;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("projects", "0003_a_machine_never_decides"),
        ("usage", "0005_receipts_of_runs"),
    ]

    operations = [
        migrations.AddField(
            model_name="budget",
            name="next_due_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="budget",
            name="recurs",
            field=models.BooleanField(default=False, db_default=False),
        ),
        migrations.RunSQL(DATE_OPEN_MONTHS, migrations.RunSQL.noop),
        ScanColumns("Budget", columns=("id", "tenant_id", "next_due_at")),
        WiderColumns(
            "Budget",
            columns=(
                "state",
                "amount",
                "available",
                "committed",
                "spent",
                "held",
                "entries",
                "version",
                "updated_at",
                "recurs",
                "next_due_at",
            ),
        ),
    ]
