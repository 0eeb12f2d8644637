"""The indexes by which holds and months that end are found, built while others go on writing."""

from django.db import migrations, models

from factory.kernel.migration_operations import IndexWhileInUse


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("usage", "0006_budgets_recur")]
    operations = [
        IndexWhileInUse(
            model_name="reservation",
            index=models.Index(
                condition=models.Q(("hold_due_at__isnull", False)),
                fields=["hold_due_at", "id"],
                name="usage_reservation_hold_ends",
            ),
        ),
        IndexWhileInUse(
            model_name="reservation",
            index=models.Index(
                condition=models.Q(("held__gt", 0)),
                fields=["tenant_id", "closed_at", "id"],
                name="usage_reservation_held",
            ),
        ),
        IndexWhileInUse(
            model_name="budget",
            index=models.Index(
                condition=models.Q(("next_due_at__isnull", False)),
                fields=["next_due_at", "id"],
                name="usage_budget_next_due",
            ),
        ),
    ]
