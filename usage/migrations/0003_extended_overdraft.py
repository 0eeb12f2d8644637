"""Money that is set aside later is no more overdrawn than what was set aside at first."""

from django.db import migrations, models

from factory.kernel.migration_operations import HoldsFromNowOn


class Migration(migrations.Migration):
    dependencies = [("usage", "0002_walls")]
    operations = [
        migrations.RemoveConstraint(model_name="ledgerentry", name="usage_ledger_no_overdraft"),
        HoldsFromNowOn(
            model_name="ledgerentry",
            constraint=models.CheckConstraint(
                condition=~models.Q(
                    movement__in=["Reserved", "Extended"], account="available", balance__lt=0
                ),
                name="usage_ledger_no_overdraft",
            ),
        ),
    ]
