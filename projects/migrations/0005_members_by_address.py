"""Indexes of members by their addresses, built while others go on writing."""

import django.db.models.functions.text
from django.db import migrations, models

from factory.kernel.migration_operations import IndexWhileInUse


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("projects", "0004_one_person")]
    operations = [
        IndexWhileInUse(
            model_name="membership",
            index=models.Index(
                django.db.models.functions.text.Upper("subject"),
                condition=models.Q(("state", "Active")),
                name="membership_by_name",
            ),
        ),
        IndexWhileInUse(
            model_name="membership",
            index=models.Index(
                condition=models.Q(("state", "Active"), models.Q(("email", ""), _negated=True)),
                fields=["tenant_id", "email"],
                name="membership_by_email",
            ),
        ),
    ]
