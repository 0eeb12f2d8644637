"""The release that comes with the product: published from a commit of this repository, as any other is."""

from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings

from config.launching.people import acting
from config.launching.repository import current_commit
from factory.embedded.system import EmbeddedError
from factory.kernel.errors import DomainError
from factory.kernel.tenancy import reading
from registry import selectors
from registry.operations import LATEST
from registry.publication.publishing import PublicationPath, PublicationStopped, publish

WORKFLOW = "repository-assessment"
MANIFEST = "assessment/factory.yaml"


def publish_bundled(tenant_id: str, project_id: UUID) -> dict[str, Any]:
    """Publish the version of the current commit, unless it has been published already.

    Whoever submits it cannot approve it: the admin puts it forward, the reviewer decides.
    """
    author, reviewer = (acting(part, tenant_id, project_id) for part in ("admin", "reviewer"))
    root = Path(settings.BASE_DIR)
    told: list[str] = []
    way = PublicationPath(author, reviewer, str(root), current_commit(root), MANIFEST, told.append)
    try:
        publish(way)
        with reading(author):
            found = selectors.resolve(WORKFLOW, alias=LATEST)
    except (PublicationStopped, DomainError) as stopped:
        steps = "".join(f"\n  {line}" for line in told)
        raise EmbeddedError(f"The bundled release could not be published: {stopped}{steps}") from stopped
    return {
        "id": str(found.id),
        "asset": found.asset,
        "version": found.version,
        "hash": found.hash,
        "commit": found.commit,
        "alias": LATEST,
        "workflowId": WORKFLOW,
    }
