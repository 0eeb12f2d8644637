"""Nobody is told twice of one month; the key is built while others go on writing."""

from django.db import migrations, models
from django.db.models import Q

from factory.kernel.migration_operations import UniqueWhileInUse


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("notifications", "0004_ending_budgets")]
    operations = [
        UniqueWhileInUse(
            "notice",
            models.UniqueConstraint(
                fields=["tenant_id", "project_id", "month", "kind"],
                condition=Q(month__isnull=False),
                nulls_distinct=False,
                name="notice_month_once",
            ),
        ),
    ]
