"""A service account holds no role by which one decides, and nothing is lent to it or by it.

A membership from before may hold such a role: it counts for nothing from now on, the auditor names it, and an
administrator ends it. So does a delegation. The rules bind what is written from now on.
"""

from django.db import migrations

from factory.kernel.migration_operations import RefusedFromNowOn


class Migration(migrations.Migration):
    dependencies = [("projects", "0002_walls")]
    operations = [
        RefusedFromNowOn(
            "Membership",
            name="membership_machine_never_decides",
            columns=("kind", "roles", "state"),
            says="NEW.kind = 'service' AND NEW.state = 'Active' "
            "AND NEW.roles && ARRAY['Reviewer', 'WorkspaceAdmin', 'PlatformAdmin']::varchar[]",
        ),
        RefusedFromNowOn(
            "Delegation",
            name="delegation_between_people",
            columns=("delegator", "delegate"),
            says="NEW.delegator ~ '^service:' OR NEW.delegate ~ '^service:'",
        ),
    ]
