"""What of releases stands on the page of a project: only that there is none yet."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.urls import reverse

from factory.console.page_extensions import Missing, Part, part_of
from factory.kernel.context import Context
from factory.kernel.permissions import may
from registry.models import AssetWorkflow


@part_of("project", 40)
def workflows(ctx: Context, project_id: UUID, at: datetime) -> Sequence[Part]:
    """Tell whether the tenant has published anything that a run could follow."""
    if not may(ctx, "ListReleases") or AssetWorkflow.objects.exists():
        return ()
    told = "The tenant has published no workflow, so a run has nothing to follow."
    return (Missing(told, "Releases", reverse("admin:registry_release_changelist")),)
