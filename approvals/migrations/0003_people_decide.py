"""Who decides, votes or gives a waiver is no service account. What machines have decided before stays on
record as it is, the auditor names it, and it serves nobody; but it can still be revoked, and still ends.
"""

from django.db import migrations, models

from factory.kernel.migration_operations import HoldsFromNowOn, RefusedFromNowOn


class Migration(migrations.Migration):
    dependencies = [("approvals", "0002_walls")]
    operations = [
        RefusedFromNowOn(
            "ApprovalRequest",
            name="approval_decided_by_people",
            columns=("decided_by", "decided_for"),
            says="NEW.decided_by ~ '^service:' OR NEW.decided_for ~ '^service:'",
        ),
        HoldsFromNowOn(
            "Vote",
            models.CheckConstraint(
                condition=models.Q(
                    models.Q(("voter__regex", "^service:"), _negated=True),
                    models.Q(("acting_for__regex", "^service:"), _negated=True),
                ),
                name="vote_of_people",
            ),
        ),
        RefusedFromNowOn(
            "Waiver",
            name="waiver_decided_by_people",
            columns=("decided_by", "deciders"),
            says="NEW.decided_by ~ '^service:' OR array_to_string(NEW.deciders, chr(10)) ~ '(^|\\n)service:'",
        ),
    ]
