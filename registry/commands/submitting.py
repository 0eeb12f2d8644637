"""A candidate comes in."""

from collections.abc import Callable
from typing import Any

from django.conf import settings

from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import FieldError
from factory.kernel.recording import record, save
from registry.commands.inputs import refuse, semver_faults, slug_faults
from registry.errors import ReleaseAlreadySubmitted, SourceRefused, VersionTaken
from registry.events import AssetReleaseSubmitted
from registry.models import Asset, Release
from registry.operations import lock_asset
from registry.source.locations import check_commit, check_manifest_path, check_repository
from registry.states import HOLDS_VERSION, ReleaseState

DEFAULT_MANIFEST = "factory.yaml"


@command("SubmitRelease")
def submit_release(
    ctx: Context,
    *,
    asset: str,
    version: str,
    repository: str,
    commit: str,
    manifest_path: str = DEFAULT_MANIFEST,
) -> str:
    """Take a candidate in as a Draft; its commit is fetched afterwards. Returns the release's id.

    The same candidate again is a conflict, unless its commit could not be fetched: then it is tried anew.
    Guards: a source that may be fetched, a version that no release of the asset holds.
    Emits: AssetReleaseSubmitted. Errors: InvalidInput, SourceRefused, VersionTaken,
    ReleaseAlreadySubmitted.
    """
    refuse(slug_faults(asset, "/asset") + semver_faults(version, "/version"), "The candidate is not valid.")
    _check_source(repository, commit, manifest_path)
    lock_asset(ctx, asset)
    owner = _asset(ctx, asset)
    candidates = Release.objects.select_for_update(no_key=True).filter(asset=owner, semver=version)
    for other in candidates.order_by("pk"):
        if other.state in HOLDS_VERSION:
            raise VersionTaken(f"{asset}@{version} is {other.state}.", extra={"releaseId": str(other.id)})
        if (other.commit, other.manifest_path) == (commit, manifest_path):
            return _try_again(ctx, other, repository)
    at = now()
    release = Release(
        asset=owner,
        semver=version,
        repository=repository,
        commit=commit,
        manifest_path=manifest_path,
        author=ctx.actor.subject,
        author_person=ctx.actor.person or ctx.actor.subject,
        created_at=at,
        next_resolution_at=at,
    )
    record(ctx, release, "Submitted", _submitted(ctx, release))
    return str(release.id)


def _check_source(repository: str, commit: str, manifest_path: str) -> None:
    checks: tuple[tuple[str, Callable[[], Any]], ...] = (
        ("/repository", lambda: check_repository(repository, settings.FACTORY_GIT_LOCAL_ROOTS)),
        ("/commit", lambda: check_commit(commit)),
        ("/manifestPath", lambda: check_manifest_path(manifest_path)),
    )
    for place, check in checks:
        try:
            check()
        except SourceRefused as refusal:
            raise SourceRefused(refusal.detail, errors=[FieldError(place, refusal.detail)]) from refusal


def _asset(ctx: Context, name: str) -> Asset:
    asset: Asset | None = Asset.objects.filter(name=name).first()
    if asset is None:
        asset = Asset(name=name, created_at=now())
        save(asset)
    return asset


def _submitted(ctx: Context, release: Release) -> AssetReleaseSubmitted:
    return AssetReleaseSubmitted(
        release_id=release.id,
        tenant_id=ctx.tenant_id,
        asset=release.asset.name,
        version=release.semver,
        source_commit=release.commit,
        submitted_by=ctx.actor.subject,
    )


def _try_again(ctx: Context, release: Release, repository: str) -> str:
    """Only the author's own candidate, from the same place, whose commit was given up on."""
    gave_up = release.closure_id is None and release.next_resolution_at is None
    same = release.repository == repository and release.author_person == (
        ctx.actor.person or ctx.actor.subject
    )
    if not (gave_up and same):
        raise ReleaseAlreadySubmitted(
            f"This commit was already submitted as {release.asset.name}@{release.semver}.",
            extra={"releaseId": str(release.id), "state": str(ReleaseState.DRAFT.value)},
        )
    release.resolution_attempts = 0
    release.next_resolution_at = now()
    record(ctx, release, "Resubmitted", _submitted(ctx, release))
    return str(release.id)
