"""Refused receipts are looked up by their fault, their id, and the model or tool that they are of."""

from django.db import migrations, models

from factory.kernel.migration_operations import IndexWhileInUse


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("runs", "0005_receipt_once_a_run")]
    operations = [
        IndexWhileInUse(
            model_name="refusedreceipt",
            index=models.Index(fields=["tenant_id", "code", "-refused_at"], name="refused_by_code"),
        ),
        IndexWhileInUse(
            model_name="refusedreceipt",
            index=models.Index(fields=["tenant_id", "receipt_id"], name="refused_by_receipt"),
        ),
        IndexWhileInUse(
            model_name="refusedreceipt",
            index=models.Index(fields=["tenant_id", "name"], name="refused_by_name"),
        ),
    ]
