"""The events of the registry."""

from uuid import UUID

from factory.kernel.events import Event, event


@event("agent-registry.releases.v1.asset-release-submitted")
class AssetReleaseSubmitted(Event):
    """A candidate was submitted from a commit; its closure is to be resolved."""

    release_id: UUID
    tenant_id: str
    asset: str
    version: str
    source_commit: str
    submitted_by: str


@event("agent-registry.releases.v1.asset-release-published")
class AssetReleasePublished(Event):
    """A release was approved and can be pinned from now on."""

    release_id: UUID
    tenant_id: str
    asset: str
    version: str
    release_hash: str
    approval_id: UUID


@event("agent-registry.releases.v1.asset-release-deprecated")
class AssetReleaseDeprecated(Event):
    """A release takes no new submissions any more."""

    release_id: UUID
    tenant_id: str
    asset: str
    version: str
    in_flight: str
    reason: str


@event("agent-registry.releases.v1.asset-release-revoked")
class AssetReleaseRevoked(Event):
    """A release was taken back: nothing loads it any more."""

    release_id: UUID
    tenant_id: str
    asset: str
    version: str
    in_flight: str
    reason: str


@event("agent-registry.aliases.v1.alias-moved")
class AliasMoved(Event):
    """An alias names another release; only later submissions are affected."""

    tenant_id: str
    asset: str
    alias: str
    release_id: UUID
    version: int
    moved_by: str
    previous_release_id: UUID | None = None
