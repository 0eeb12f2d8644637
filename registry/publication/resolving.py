"""The closure resolver: fetch the commit outside any transaction, then store what it says by one command."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings

from factory.kernel.context import Context, system
from factory.kernel.errors import DomainError
from factory.kernel.tenancy import reading
from registry.commands.closing import record_resolution_failure, resolve_closure
from registry.errors import DependencyNotPublished, ManifestRefused
from registry.manifest.closure import ResolvedClosure, close, in_repository, referred_files
from registry.manifest.definitions import validated
from registry.models import Release
from registry.selectors import dependency_releases
from registry.source.git import FetchedCommit, fetched
from registry.source.locations import check_repository
from registry.states import ReleaseState

ACTOR = "ClosureResolver"


@dataclass(frozen=True, slots=True)
class PendingClosure:
    """Hold what the resolver needs of a release that waits for its closure."""

    release_id: UUID
    asset: str
    version: str
    repository: str
    commit: str
    manifest_path: str
    attempt: int


def resolve(tenant_id: str, release_id: UUID) -> None:
    """Resolve one candidate if it is due. Twice, or by two at once, it ends the same."""
    ctx = system(tenant_id, ACTOR)
    candidate = due_candidate(ctx, release_id)
    if candidate is None:
        return
    try:
        resolve_closure(ctx, release_id=release_id, resolved=closure_of(ctx, candidate))
    except DomainError as refusal:
        record_resolution_failure(
            ctx,
            release_id=release_id,
            attempt=candidate.attempt,
            error=refusal.detail,
            faults=refusal.errors,
            final=not refusal.retryable,
        )


def due_candidate(ctx: Context, release_id: UUID) -> PendingClosure | None:
    """Return the candidate, unless its closure is resolved or given up on."""
    with reading(ctx):
        row = Release.objects.select_related("asset").filter(pk=release_id).first()
        if row is None or row.next_resolution_at is None:
            return None
        return PendingClosure(
            release_id=row.id,
            asset=row.asset.name,
            version=row.semver,
            repository=row.repository,
            commit=row.commit,
            manifest_path=row.manifest_path,
            attempt=row.resolution_attempts,
        )


def closure_of(ctx: Context, candidate: PendingClosure) -> ResolvedClosure:
    """Fetch the commit and close over it. Raises ManifestRefused, SourceRefused, FetchFailed or
    DependencyNotPublished."""
    source = check_repository(candidate.repository, settings.FACTORY_GIT_LOCAL_ROOTS)
    with fetched(source, candidate.commit) as commit:
        manifest, definition = read_manifest(commit, candidate.manifest_path)
        if (definition["asset"], definition["version"]) != (candidate.asset, candidate.version):
            stated = f"{definition['asset']}@{definition['version']}"
            raise ManifestRefused(
                f"The manifest is of {stated}, and {candidate.asset}@{candidate.version} was submitted."
            )
        contents = read_files(commit, candidate.manifest_path, definition)
    with reading(ctx):
        dependencies = dependency_hashes(definition.get("dependencies", ()))
    return close(
        commit=candidate.commit,
        definition=definition,
        manifest=manifest,
        contents=contents,
        dependencies=dependencies,
    )


def read_manifest(commit: FetchedCommit, path: str) -> tuple[bytes, dict[str, Any]]:
    """Return the manifest's bytes and what they say. Raises ManifestRefused."""
    manifest = commit.read([path])[path]
    return manifest, validated(manifest)


def read_files(commit: FetchedCommit, manifest_path: str, definition: dict[str, Any]) -> dict[str, bytes]:
    """Return every file that the manifest names, by its path in the manifest."""
    paths = sorted({path for _, _, path, _ in referred_files(definition)})
    contents = commit.read([in_repository(manifest_path, path) for path in paths])
    return {path: contents[in_repository(manifest_path, path)] for path in paths}


def dependency_hashes(names: Sequence[str]) -> dict[str, str]:
    """Return the hash of each dependency. Raises DependencyNotPublished for the first that has none."""
    releases = dependency_releases(names)
    for name in names:
        if name not in releases or releases[name].state != ReleaseState.PUBLISHED:
            raise DependencyNotPublished(f"The dependency {name} is not a Published release.")
    return {name: releases[name].resolved.hash for name in names}
