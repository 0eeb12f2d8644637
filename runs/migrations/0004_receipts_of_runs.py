"""What is refused of receipts is kept for a person."""

import django.db.models.deletion
from django.db import migrations, models

import factory.kernel.ids
import factory.kernel.models.base
from factory.kernel.migration_operations import AppendOnly, TenantWalls


def _of(model, **more):
    return factory.kernel.models.base.TenantForeignKey(
        db_constraint=False,
        db_index=False,
        on_delete=django.db.models.deletion.PROTECT,
        related_name="+",
        to=model,
        **more,
    )


class Migration(migrations.Migration):
    dependencies = [("runs", "0003_run_clocks")]
    operations = [
        migrations.CreateModel(
            name="RefusedReceipt",
            fields=[
                ("tenant_id", models.CharField(editable=False, max_length=64)),
                (
                    "id",
                    models.UUIDField(
                        default=factory.kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("run", _of("runs.run")),
                ("step", _of("runs.step")),
                ("attempt", _of("runs.attempt")),
                ("lease", _of("runs.lease")),
                ("recorded", _of("runs.receipt", null=True)),
                ("receipt_id", models.CharField(blank=True, max_length=255)),
                ("kind", models.CharField(blank=True, max_length=16)),
                ("provider", models.CharField(blank=True, max_length=200)),
                ("name", models.CharField(blank=True, max_length=200)),
                ("code", models.CharField(max_length=32)),
                ("detail", models.TextField()),
                ("content", models.TextField()),
                ("content_hash", models.CharField(max_length=71)),
                ("refused_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["tenant_id", "-refused_at", "-id"], name="refused_newest")],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("tenant_id"),
                        models.F("run"),
                        models.F("code"),
                        models.F("content_hash"),
                        name="refused_receipt_kept_once",
                    ),
                    models.CheckConstraint(
                        condition=~models.Q(code="receipt-conflict") | models.Q(recorded__isnull=False),
                        name="refused_receipt_conflicts_with_one",
                    ),
                ],
            },
        ),
        TenantWalls("RefusedReceipt"),
        AppendOnly("RefusedReceipt"),
    ]
