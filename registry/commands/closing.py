"""What the commit said is stored, or why it could not be read. `registry.publication.resolving` fetches."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import FieldError
from factory.kernel.recording import record, save
from registry.errors import DependencyNotPublished, ReleaseNotInState
from registry.manifest.closure import ResolvedClosure as Found
from registry.models import Closure, ClosureDependency, ClosureEntry, Release, ReleaseBlob
from registry.operations import lock_release
from registry.selectors import dependency_releases
from registry.states import ReleaseState

RETRIES = 5
FIRST_DELAY = timedelta(seconds=10)


@command("ResolveClosure")
def resolve_closure(ctx: Context, *, release_id: UUID, resolved: Found) -> str:
    """Store a candidate's closure, once and for all. Returns the release's hash.

    Coming second with the same hash is no error: two resolvers may have been on their way.
    Guards: a Draft without a closure; every dependency is Published with the hash that was found.
    Emits: nothing. Errors: ReleaseNotFound, ReleaseNotInState, DependencyNotPublished.
    """
    release = lock_release(ctx, release_id)
    if release.closure is not None:
        if release.resolved.hash != resolved.hash:
            raise ReleaseNotInState("The release has another closure already.")
        return resolved.hash
    needed = _dependencies(resolved)
    closure = Closure(hash=resolved.hash, definition=resolved.definition, resolved_at=now())
    save(closure)
    _keep_contents(ctx, closure, resolved, needed)
    release.closure = closure
    release.next_resolution_at = None
    release.resolution_error = ""
    release.resolution_faults = []
    record(ctx, release, "ClosureResolved", detail={"hash": resolved.hash, "entries": len(resolved.entries)})
    return resolved.hash


def _dependencies(resolved: Found) -> list[Release]:
    wanted = {entry.item_id: entry.sha256 for entry in resolved.entries if entry.kind == "dependency"}
    releases = dependency_releases(wanted)
    for name, sha256 in wanted.items():
        row = releases.get(name)
        if row is None or row.state != ReleaseState.PUBLISHED or row.resolved.hash != sha256:
            raise DependencyNotPublished(f"The dependency {name} is not a Published release.")
    return list(releases.values())


def _keep_contents(ctx: Context, closure: Closure, resolved: Found, needed: Sequence[Release]) -> None:
    tenant = {"tenant_id": ctx.tenant_id}
    ClosureEntry.objects.bulk_create(
        ClosureEntry(
            **tenant,
            closure=closure,
            kind=entry.kind,
            item_id=entry.item_id,
            path=entry.path,
            sha256=entry.sha256,
            size=entry.size,
            side_effect_class=entry.side_effect_class,
        )
        for entry in resolved.entries
    )
    ReleaseBlob.objects.bulk_create(
        (
            ReleaseBlob(**tenant, sha256=sha256, content=content)
            for sha256, content in sorted(resolved.files.items())
        ),
        ignore_conflicts=True,
        batch_size=50,
    )
    closures = [release.closure_id for release in needed]
    inherited = ClosureDependency.objects.filter(closure_id__in=closures).values_list("release_id", flat=True)
    ClosureDependency.objects.bulk_create(
        ClosureDependency(**tenant, closure=closure, release_id=release_id)
        for release_id in sorted({release.id for release in needed} | set(inherited))
    )


@command("RecordResolutionFailure")
def record_resolution_failure(
    ctx: Context,
    *,
    release_id: UUID,
    attempt: int,
    error: str,
    faults: Sequence[FieldError] = (),
    final: bool,
) -> None:
    """Keep why a candidate's closure could not be resolved, and when it is tried again.

    Guards: the attempt is the one that is due; a late word about an older attempt changes nothing.
    `final` faults are never retried: the commit will not change. Others five times, further apart each
    time. Emits: nothing. Errors: ReleaseNotFound.
    """
    release = lock_release(ctx, release_id)
    if release.next_resolution_at is None or release.resolution_attempts != attempt:
        return
    release.resolution_attempts = attempt + 1
    release.resolution_error = error[:1000]
    release.resolution_faults = [{"pointer": f.pointer, "detail": f.detail} for f in faults]
    over = final or attempt >= RETRIES
    release.next_resolution_at = None if over else now() + FIRST_DELAY * 2**attempt
    record(ctx, release, "ClosureFailed", detail={"attempt": attempt + 1, "final": over})
