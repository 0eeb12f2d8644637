"""Who can open a budget is told, once, that none covers a month."""

from django.db import migrations, models
from django.db.models import Q

from factory.kernel.migration_operations import HoldsFromNowOn, WiderColumns

CHOOSABLE = ["requested", "expiring", "decided", "break-glass", "too-few", "budget-ending"]
CHOICES = [
    ("requested", "Requested"),
    ("expiring", "Expiring"),
    ("decided", "Decided"),
    ("break-glass", "Break Glass"),
    ("too-few", "Too Few"),
    ("budget-ending", "Budget Ending"),
    ("test", "Test"),
    ("sign-in", "Sign In"),
]
KINDS = sorted(word for word, _ in CHOICES)
NO_REQUEST = ["test", "sign-in", "budget-ending"]


def check(model: str, name: str, condition: Q) -> HoldsFromNowOn:
    return HoldsFromNowOn(model, models.CheckConstraint(condition=condition, name=name))


class Migration(migrations.Migration):
    dependencies = [("approvals", "0003_people_decide"), ("notifications", "0003_sign_in_links")]
    operations = [
        migrations.RemoveConstraint("channel", "channel_kinds_known"),
        migrations.RemoveConstraint("notice", "notice_kind_known"),
        migrations.RemoveConstraint("notice", "notice_about_a_request"),
        migrations.RemoveConstraint("preference", "preference_kinds_known"),
        migrations.AddField("notice", "month", models.DateField(null=True)),
        migrations.AlterField("notice", "kind", models.CharField(choices=CHOICES, max_length=16)),
        check("channel", "channel_kinds_known", Q(kinds__contained_by=CHOOSABLE)),
        check("preference", "preference_kinds_known", Q(kinds__contained_by=CHOOSABLE)),
        check("notice", "notice_kind_known", Q(kind__in=KINDS)),
        check(
            "notice",
            "notice_about_a_request",
            Q(kind__in=NO_REQUEST, approval__isnull=True)
            | (~Q(kind__in=NO_REQUEST) & Q(approval__isnull=False)),
        ),
        check(
            "notice",
            "notice_about_a_month",
            Q(kind="budget-ending", month__isnull=False) | (~Q(kind="budget-ending") & Q(month__isnull=True)),
        ),
        WiderColumns("Notice", columns=("reminded_at",)),
    ]
