"""Steps inside a command's transaction, for this app's commands and for the apps above."""

from uuid import UUID

from django.db import connection

from factory.kernel.clock import now
from factory.kernel.commanding import operation
from factory.kernel.context import Context
from factory.kernel.locking import lock, one_at_a_time
from factory.kernel.recording import record, save
from registry.errors import ReleaseNotFound
from registry.events import AliasMoved
from registry.models import Alias, AliasMove, Release
from registry.selectors import not_published
from registry.states import LOADABLE, ReleaseState

LATEST = "latest"


@operation
def lock_asset(ctx: Context, asset: str) -> None:
    """Wait for whoever else changes releases or aliases of this asset. Comes before any row lock.

    An advisory lock, because an asset's row is evidence that nobody may change, and PostgreSQL asks
    for the right to change what it locks.
    """
    one_at_a_time("registry.asset", ctx.tenant_id, asset)


@operation
def lock_release(ctx: Context, release_id: UUID) -> Release:
    """Lock the asset, then the release. Raises ReleaseNotFound."""
    missing = ReleaseNotFound("There is no such release here.")
    name = Release.objects.filter(pk=release_id).values_list("asset__name", flat=True).first()
    if name is None:
        raise missing
    lock_asset(ctx, name)
    return lock(Release, release_id, missing=missing)


_PUBLISHED = """
SELECT r.state, EXISTS (
    SELECT 1 FROM registry_closuredependency d JOIN registry_release n ON n.id = d.release_id
    WHERE d.closure_id = r.closure_id AND n.state = %s)
FROM registry_release r WHERE r.id = %s FOR SHARE OF r
"""


@operation
def hold_published(ctx: Context, release_id: UUID) -> None:
    """Keep a release from being taken out of use until the caller commits; comes before the project's lock.

    Raises ReleaseNotPublished when that has happened already, or when it needs a Revoked one: no worker could
    load it.
    """
    with connection.cursor() as cursor:
        cursor.execute(_PUBLISHED, [ReleaseState.REVOKED, release_id])
        state, needs_revoked = cursor.fetchone() or (None, False)
    if state != ReleaseState.PUBLISHED:
        raise not_published("The release was taken out of use just now.", "/releaseId")
    if needs_revoked:
        raise not_published("The release needs another one that is Revoked: nothing loads it.", "/releaseId")


@operation
def hold_loadable(ctx: Context, release_id: UUID) -> bool:
    """Return whether a release may be worked with; nobody changes that until the caller commits.

    It and all that it needs are share-locked, in the order of their keys: a revocation comes wholly before
    or wholly after. Comes before the project's lock.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LOADABLE, [release_id, release_id])
        states = {row[0]: row[1] for row in cursor.fetchall()}
    needed = [state for key, state in states.items() if key != release_id]
    return states.get(release_id) in LOADABLE and ReleaseState.REVOKED not in needed


_LOADABLE = """
SELECT id, state FROM registry_release WHERE id = %s OR id IN (
    SELECT d.release_id FROM registry_closuredependency d
    JOIN registry_release r ON r.closure_id = d.closure_id WHERE r.id = %s)
ORDER BY id FOR SHARE
"""


@operation
def point_alias(ctx: Context, release: Release, name: str) -> Alias:
    """Let an alias of the release's asset name it from now on, and keep the move. Needs the asset's lock.

    Emits AliasMoved. An alias that already names the release stays as it is.
    """
    rows = Alias.objects.select_for_update(no_key=True)
    alias: Alias | None = rows.filter(asset_id=release.asset_id, name=name).first()
    if alias is not None and alias.release_id == release.id:
        return alias
    before = alias.release_id if alias else None
    if alias is None:
        alias, cause = Alias(asset_id=release.asset_id, name=name, release_id=release.id), "AliasCreated"
    else:
        alias.move(release=release)
        cause = "AliasMoved"
    event = AliasMoved(
        tenant_id=ctx.tenant_id,
        asset=release.asset.name,
        alias=name,
        release_id=release.id,
        version=alias.version + 1,
        moved_by=ctx.actor.subject,
        previous_release_id=before,
    )
    record(ctx, alias, cause, event)
    save(
        AliasMove(
            alias_id=alias.id,
            version=alias.version,
            release_id=release.id,
            moved_by=ctx.actor.subject,
            moved_at=now(),
        )
    )
    return alias
