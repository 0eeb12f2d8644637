"""Sign-ins that an administrator makes a member's."""

import django_fsm
from django.db import migrations, models

import factory.kernel.ids
from factory.kernel.migration_operations import JournalRequired, MutableColumns, TenantWalls


class Migration(migrations.Migration):
    dependencies = [
        ("projects", "0003_a_machine_never_decides"),
    ]

    operations = [
        migrations.CreateModel(
            name="Identity",
            fields=[
                ("tenant_id", models.CharField(editable=False, max_length=64)),
                (
                    "id",
                    models.UUIDField(
                        default=factory.kernel.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("issuer", models.CharField(max_length=255)),
                ("subject", models.CharField(max_length=255)),
                ("person", models.CharField(max_length=255)),
                ("reason", models.CharField(max_length=1000)),
                ("joined_at", models.DateTimeField()),
                ("joined_by", models.CharField(max_length=255)),
                (
                    "state",
                    django_fsm.FSMField(
                        choices=[("Active", "Active"), ("Ended", "Ended")],
                        default="Active",
                        max_length=50,
                        protected=True,
                    ),
                ),
                ("ended_at", models.DateTimeField(null=True)),
                ("ended_by", models.CharField(blank=True, default="", max_length=255)),
                ("version", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.AddIndex(
            model_name="identity",
            index=models.Index(fields=["tenant_id", "subject"], name="identity_by_subject"),
        ),
        migrations.AddIndex(
            model_name="identity",
            index=models.Index(fields=["tenant_id", "person"], name="identity_by_person"),
        ),
        migrations.AddConstraint(
            model_name="identity",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "Active")),
                fields=("tenant_id", "issuer", "subject"),
                name="identity_of_one_person",
            ),
        ),
        migrations.AddConstraint(
            model_name="identity",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["Active", "Ended"])), name="identity_state_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="identity",
            constraint=models.CheckConstraint(
                condition=models.Q(("person__regex", "^service:"), _negated=True), name="identity_of_a_person"
            ),
        ),
        migrations.AddConstraint(
            model_name="identity",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("ended_at__isnull", True), ("ended_by", ""), ("state", "Active")),
                    models.Q(
                        models.Q(("state", "Active"), _negated=True),
                        models.Q(("ended_by", ""), _negated=True),
                        ("ended_at__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="identity_ended_since_and_by",
            ),
        ),
        TenantWalls("Identity"),
        MutableColumns("Identity", columns=("state", "ended_at", "ended_by", "version")),
        JournalRequired("Identity"),
    ]
