"""An alias names another release."""

from uuid import UUID

from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import NotFound, VersionMismatch
from factory.kernel.locking import lock
from factory.kernel.recording import audit
from registry.commands.inputs import refuse, slug_faults
from registry.errors import ReleaseNotPublished
from registry.models import Alias, Release
from registry.operations import lock_asset, point_alias
from registry.selectors.obstacles import stops_naming


@command("MoveAlias")
def move_alias(ctx: Context, *, asset: str, alias: str, release_id: UUID, version: int | None = None) -> int:
    """Let an alias name a Published release of its asset. Returns the alias's version.

    Only later submissions are affected. `version` is the one that the caller saw, 0 or nothing for an
    alias that does not exist yet. Guards: the release is Published and of this asset; nobody moved the
    alias meanwhile. Emits: AliasMoved (nothing if it names the release already). Errors: InvalidInput,
    NotFound, ReleaseNotPublished, VersionMismatch.
    """
    refuse(slug_faults(alias, "/alias"), "The alias is not valid.")
    lock_asset(ctx, asset)
    missing = NotFound(f"There is no such release of {asset}.")
    release = lock(Release, release_id, missing=missing)
    if release.asset.name != asset:
        raise missing
    current = Alias.objects.filter(asset_id=release.asset_id, name=alias).first()
    seen = current.version if current else 0
    if (version or 0) != seen:
        raise VersionMismatch(f"The alias is at version {seen}.", extra={"version": seen})
    if why := stops_naming(release):
        raise ReleaseNotPublished(why)
    moved = point_alias(ctx, release, alias)
    named = {"releaseId": str(release.id), "previousReleaseId": str(current.release_id) if current else None}
    audit(ctx, "MoveAlias", subject=f"alias:{asset}/{alias}", detail=named, stream=moved.id)
    return int(moved.version)
