"""The walls of approvals: what is decided about, and what was decided, cannot be changed afterwards."""

from django.db import migrations

from factory.kernel.migration_operations import (
    AppendOnly,
    JournalRequired,
    MutableColumns,
    TenantReference,
    TenantWalls,
)

PROPOSALS = "approvals_proposal"


class Migration(migrations.Migration):
    dependencies = [("approvals", "0001_initial"), ("projects", "0002_walls"), ("factory", "0002_walls")]

    operations = [
        TenantWalls("PolicyRevision"),
        AppendOnly("PolicyRevision"),
        JournalRequired("PolicyRevision"),
        TenantWalls("Proposal"),
        AppendOnly("Proposal"),
        migrations.RunSQL(
            f"ALTER TABLE {PROPOSALS} ADD CONSTRAINT proposal_hash_is_of_content "
            "CHECK (hash = 'sha256:' || encode(sha256(content), 'hex')); "
            f"ALTER TABLE {PROPOSALS} ADD CONSTRAINT proposal_size_is_of_content "
            "CHECK (size = octet_length(content))",
            f"ALTER TABLE {PROPOSALS} DROP CONSTRAINT proposal_hash_is_of_content; "
            f"ALTER TABLE {PROPOSALS} DROP CONSTRAINT proposal_size_is_of_content",
        ),
        TenantWalls(
            "Waiver", scan=("id", "tenant_id", "state", "version", "expires_at"), later=("approval",)
        ),
        MutableColumns(
            "Waiver",
            columns=(
                "state",
                "version",
                "approval_id",
                "decided_by",
                "decided_person",
                "decided_at",
                "deciders",
                "ended_at",
                "ended_by",
                "end_reason",
            ),
        ),
        JournalRequired("Waiver"),
        TenantWalls("ApprovalRequest", scan=("id", "tenant_id", "state", "version", "expires_at")),
        TenantReference("Waiver", "approval"),
        MutableColumns(
            "ApprovalRequest",
            columns=(
                "state",
                "version",
                "votes",
                "decision",
                "decided_by",
                "decided_person",
                "decided_for",
                "delegation_id",
                "break_glass",
                "passed_over",
                "decided_at",
                "reason",
                "closed_at",
                "valid_until",
            ),
        ),
        JournalRequired("ApprovalRequest"),
        TenantWalls("Authorization"),
        AppendOnly("Authorization"),
        TenantWalls("Vote"),
        AppendOnly("Vote"),
    ]
