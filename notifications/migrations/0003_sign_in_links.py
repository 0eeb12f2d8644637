"""A kind of notice that is about no request: the link by which a member sets their password."""

from django.db import migrations, models

from factory.kernel.migration_operations import HoldsFromNowOn


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0003_people_decide"),
        ("notifications", "0002_walls"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="notice",
            name="notice_kind_known",
        ),
        migrations.RemoveConstraint(
            model_name="notice",
            name="notice_about_a_request",
        ),
        migrations.AlterField(
            model_name="notice",
            name="kind",
            field=models.CharField(
                choices=[
                    ("requested", "Requested"),
                    ("expiring", "Expiring"),
                    ("decided", "Decided"),
                    ("break-glass", "Break Glass"),
                    ("too-few", "Too Few"),
                    ("test", "Test"),
                    ("sign-in", "Sign In"),
                ],
                max_length=16,
            ),
        ),
        HoldsFromNowOn(
            model_name="notice",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        ["break-glass", "decided", "expiring", "requested", "sign-in", "test", "too-few"],
                    )
                ),
                name="notice_kind_known",
            ),
        ),
        HoldsFromNowOn(
            model_name="notice",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("approval__isnull", True), ("kind__in", ("test", "sign-in"))),
                    models.Q(
                        models.Q(("kind__in", ("test", "sign-in")), _negated=True),
                        ("approval__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="notice_about_a_request",
            ),
        ),
    ]
