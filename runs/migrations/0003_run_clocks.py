"""What stops the clock of a run, and since when.

Nothing here reads or writes a row. A run without `clock_since` has a clock that nobody has noted: rows from
before, and what processes of the release before start or move. Whoever locks the run next works it out.
"""

import django.contrib.postgres.fields
from django.db import migrations, models
from django.db.models import Q

from factory.kernel.migration_operations import HoldsFromNowOn, ScanColumns, WiderColumns

RUN_MOVES = (
    "state", "version", "budget_reservation_id", "started_at", "waiting_since", "deadline_at", "finished_at",
    "updated_at", "failure_class", "reason", "output", "output_hash", "frozen_at", "clock_since",
    "clock_because",
)  # fmt: skip
FORGET_CLOCK = """
CREATE FUNCTION runs_forget_clock() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    NEW.clock_since := NULL;
    NEW.clock_because := '{}';
    RETURN NEW;
END $$;
CREATE TRIGGER forget_clock BEFORE UPDATE ON runs_run FOR EACH ROW WHEN (
    (OLD.state, OLD.frozen_at) IS DISTINCT FROM (NEW.state, NEW.frozen_at)
    AND (OLD.clock_since, OLD.clock_because) IS NOT DISTINCT FROM (NEW.clock_since, NEW.clock_because)
    AND (('approval' = ANY(NEW.clock_because)) <> (NEW.state = 'WaitingForApproval')
      OR ('frozen' = ANY(NEW.clock_because))
         <> (NEW.frozen_at IS NOT NULL AND NEW.state IN ('Running', 'WaitingForApproval')))
) EXECUTE FUNCTION runs_forget_clock();
ALTER TABLE runs_run ENABLE ALWAYS TRIGGER forget_clock
"""
"""The release before moves a run and leaves its clock: what the clock says then is of the time before."""


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
                base_field=models.CharField(max_length=16),
                blank=True,
                default=list,
                db_default=[],
                size=None,
            ),
        ),
        WiderColumns("Run", columns=RUN_MOVES),
        ScanColumns("Run", columns=("clock_because",)),
        HoldsFromNowOn(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=Q(clock_since__isnull=False, deadline_at__isnull=False)
                | Q(clock_since__isnull=True, clock_because=[]),
                name="run_deadline_with_its_clock",
            ),
        ),
        migrations.RunSQL(FORGET_CLOCK),
    ]
