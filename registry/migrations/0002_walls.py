"""The walls around the registry's tables."""

from django.db import migrations

from factory.kernel.migration_operations import AppendOnly, JournalRequired, MutableColumns, TenantWalls

RELEASE_MOVES = (
    "state",
    "version",
    "closure_id",
    "resolution_attempts",
    "next_resolution_at",
    "resolution_error",
    "resolution_faults",
    "evaluation_id",
    "approval_id",
    "published_at",
    "deprecated_at",
    "revoked_at",
    "in_flight",
    "ending_reason",
)
EVIDENCE = (
    "Asset",
    "Closure",
    "ClosureEntry",
    "ClosureDependency",
    "ReleaseBlob",
    "EvaluationRecord",
    "AssetWorkflow",
    "AliasMove",
)


class Migration(migrations.Migration):
    dependencies = [("registry", "0001_initial"), ("factory", "0002_walls")]

    # A table comes before those that refer to it: a reference needs the other side's key with its tenant.
    operations = [
        TenantWalls("Asset"),
        TenantWalls("Closure"),
        TenantWalls("EvaluationRecord"),
        TenantWalls(
            "Release", scan=("id", "tenant_id", "next_resolution_at", "state", "in_flight", "closure_id")
        ),
        TenantWalls("ClosureEntry"),
        TenantWalls("ClosureDependency", scan=("tenant_id", "closure_id", "release_id")),
        TenantWalls("ReleaseBlob"),
        TenantWalls("AssetWorkflow"),
        TenantWalls("Alias"),
        TenantWalls("AliasMove"),
        *(AppendOnly(name) for name in EVIDENCE),
        MutableColumns("Release", columns=RELEASE_MOVES),
        MutableColumns("Alias", columns=("state", "version", "release_id")),
        JournalRequired("Release"),
        JournalRequired("Alias"),
    ]
