"""A receipt is known within its run, by its provider and its id there."""

from django.db import migrations, models

from factory.kernel.migration_operations import UniqueWhileInUse


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("usage", "0004_holds_end")]
    operations = [
        UniqueWhileInUse(
            model_name="usagerecord",
            constraint=models.UniqueConstraint(
                fields=("tenant_id", "receipt_id", "run_id", "provider"), name="usage_record_once_a_run"
            ),
        ),
        migrations.RemoveConstraint(model_name="usagerecord", name="usage_record_receipt_once"),
    ]
