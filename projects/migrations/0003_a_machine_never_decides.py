"""A service account holds no role by which one decides, and nothing is lent to it or by it.

A membership from before may hold such a role: it counts for nothing from now on, the auditor names it, and an
administrator ends it. So the CHECKs bind what is written from now on.
"""

from django.db import migrations, models

from factory.kernel.migration_operations import HoldsFromNowOn


class Migration(migrations.Migration):
    dependencies = [("projects", "0002_walls")]
    operations = [
        HoldsFromNowOn(
            "Membership",
            models.CheckConstraint(
                condition=models.Q(
                    ("kind", "service"),
                    ("roles__overlap", ["Reviewer", "WorkspaceAdmin", "PlatformAdmin"]),
                    ("state", "Active"),
                    _negated=True,
                ),
                name="membership_machine_never_decides",
            ),
        ),
        HoldsFromNowOn(
            "Delegation",
            models.CheckConstraint(
                condition=models.Q(
                    models.Q(("delegator__regex", "^service:"), _negated=True),
                    models.Q(("delegate__regex", "^service:"), _negated=True),
                ),
                name="delegation_between_people",
            ),
        ),
    ]
