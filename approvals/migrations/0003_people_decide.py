"""Who decides, votes or gives a waiver is no service account. What machines have decided before stays on
record as it is, and the auditor names it: the CHECKs bind what is written from now on.
"""

from django.db import migrations, models

from factory.kernel.migration_operations import HoldsFromNowOn


class Migration(migrations.Migration):
    dependencies = [("approvals", "0002_walls")]
    operations = [
        HoldsFromNowOn(
            "ApprovalRequest",
            models.CheckConstraint(
                condition=models.Q(
                    models.Q(("decided_by__regex", "^service:"), _negated=True),
                    models.Q(("decided_for__regex", "^service:"), _negated=True),
                ),
                name="approval_decided_by_people",
            ),
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
        HoldsFromNowOn(
            "Waiver",
            models.CheckConstraint(
                condition=models.Q(("decided_by__regex", "^service:"), _negated=True),
                name="waiver_decided_by_people",
            ),
        ),
    ]
