"""A hold can end: by a person, who may settle what was unknown, and by its age."""

from django.db import migrations, models

from factory.kernel.migration_operations import Amendable, HoldsFromNowOn, ScanColumns, WiderColumns


class Migration(migrations.Migration):
    dependencies = [
        ("projects", "0002_walls"),
        ("usage", "0003_extended_overdraft"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="ledgerentry",
            name="usage_ledger_movement",
        ),
        migrations.AddField(
            model_name="reservation",
            name="hold_due_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="reservation",
            name="hold_ended_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="reservation",
            name="hold_ended_by",
            field=models.CharField(blank=True, default="", db_default="", max_length=255),
        ),
        migrations.AddField(
            model_name="reservation",
            name="hold_ended_evidence",
            field=models.TextField(blank=True, default="", db_default=""),
        ),
        migrations.AddField(
            model_name="reservation",
            name="hold_ended_reason",
            field=models.TextField(blank=True, default="", db_default=""),
        ),
        migrations.AddField(
            model_name="usagerecord",
            name="settled_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="usagerecord",
            name="settled_by",
            field=models.CharField(blank=True, default="", db_default="", max_length=255),
        ),
        migrations.AddField(
            model_name="usagerecord",
            name="settled_evidence",
            field=models.TextField(blank=True, default="", db_default=""),
        ),
        migrations.AddField(
            model_name="usagerecord",
            name="settled_reason",
            field=models.TextField(blank=True, default="", db_default=""),
        ),
        HoldsFromNowOn(
            model_name="ledgerentry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "movement__in",
                        [
                            "Adjusted",
                            "AmountChanged",
                            "Expired",
                            "Extended",
                            "Granted",
                            "HoldEnded",
                            "Released",
                            "Reserved",
                            "Settled",
                        ],
                    )
                ),
                name="usage_ledger_movement",
            ),
        ),
        HoldsFromNowOn(
            model_name="reservation",
            constraint=models.CheckConstraint(
                condition=models.Q(("hold_due_at", None), ("held__gt", 0), _connector="OR"),
                name="usage_reservation_hold_due",
            ),
        ),
        HoldsFromNowOn(
            model_name="reservation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("hold_ended_at", None), ("hold_ended_by", "")),
                    models.Q(
                        ("hold_ended_at__gte", models.F("closed_at")),
                        models.Q(("hold_ended_by", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="usage_reservation_hold_ended",
            ),
        ),
        HoldsFromNowOn(
            model_name="usagerecord",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("settled_at", None), ("settled_by", "")),
                    models.Q(
                        ("settled_at__gte", models.F("recorded_at")),
                        ("state", "Confirmed"),
                        models.Q(("settled_by", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="usage_record_settled",
            ),
        ),
        ScanColumns("Reservation", columns=("hold_due_at",)),
        WiderColumns(
            "Reservation",
            columns=(
                "state",
                "extended",
                "spent",
                "held",
                "due_at",
                "dispatched_at",
                "closed_at",
                "hold_due_at",
                "hold_ended_at",
                "hold_ended_by",
                "hold_ended_reason",
                "hold_ended_evidence",
            ),
        ),
        Amendable(
            "UsageRecord",
            columns=(
                "state",
                "cost",
                "settled_at",
                "settled_by",
                "settled_reason",
                "settled_evidence",
            ),
        ),
    ]
