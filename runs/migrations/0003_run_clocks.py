"""What stops the clock of a run, and since when: rows that exist go on with the time that they have left."""

import django.contrib.postgres.fields
from django.db import migrations, models
from django.db.models import Q

from factory.kernel.migration_operations import Backfill, ScanColumns, WiderColumns

RUN_MOVES = (
    "state", "version", "budget_reservation_id", "started_at", "waiting_since", "deadline_at", "finished_at",
    "updated_at", "failure_class", "reason", "output", "output_hash", "frozen_at", "clock_since",
    "clock_because",
)  # fmt: skip
CLOCKS = """
UPDATE runs_run r SET
    clock_because = CASE WHEN r.state IN ('Running', 'WaitingForApproval') THEN array_remove(ARRAY[
        CASE WHEN r.state = 'WaitingForApproval' THEN 'approval' END,
        CASE WHEN r.frozen_at IS NOT NULL THEN 'frozen' END,
        CASE WHEN d.since IS NOT NULL THEN 'operator' END], NULL) ELSE '{}' END,
    clock_since = CASE
        WHEN r.finished_at IS NOT NULL THEN r.finished_at
        WHEN r.state = 'WaitingForApproval' THEN r.waiting_since
        WHEN r.state = 'Running' THEN greatest(r.updated_at, least(r.frozen_at, d.since))
        ELSE r.updated_at END
FROM runs_run o LEFT JOIN (
    SELECT run_id, min(updated_at) AS since FROM runs_step WHERE attention = 'uncertain' GROUP BY run_id
) d ON d.run_id = o.id
WHERE o.id = r.id AND r.deadline_at IS NOT NULL
"""
"""The time waited for people before is in the deadline already; of what stops a run now, all counts."""


class Migration(migrations.Migration):
    dependencies = [("runs", "0002_walls")]
    operations = [
        migrations.AddField(
            model_name="run",
            name="clock_since",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="clock_because",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=16), blank=True, default=list, size=None
            ),
        ),
        WiderColumns("Run", columns=RUN_MOVES),
        ScanColumns("Run", columns=("clock_because",)),
        Backfill("Run", CLOCKS, reads=("Step",)),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=Q(deadline_at__isnull=False, clock_since__isnull=False)
                | Q(deadline_at__isnull=True, clock_since__isnull=True, clock_because=[]),
                name="run_deadline_with_its_clock",
            ),
        ),
    ]
