"""A receipt is known within its run, by its provider and its id."""

from django.db import migrations, models

from factory.kernel.migration_operations import UniqueWhileInUse


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("runs", "0004_receipts_of_runs")]
    operations = [
        UniqueWhileInUse(
            model_name="receipt",
            constraint=models.UniqueConstraint(
                models.F("tenant_id"),
                models.F("receipt_id"),
                models.F("run"),
                models.F("provider"),
                name="receipt_once_a_run",
            ),
        ),
        migrations.RemoveConstraint(model_name="receipt", name="receipt_once_a_tenant"),
    ]
