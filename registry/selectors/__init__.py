"""Reads. To the other apps they hand frozen views, never rows."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from factory.kernel.errors import FieldError, NotFound
from factory.kernel.tenancy import scanning
from registry.errors import (
    ReleaseNotFound,
    ReleaseNotLoadable,
    ReleaseNotPublished,
    UnknownAlias,
    UnknownWorkflow,
)
from registry.manifest.closure import ClosureFile
from registry.manifest.contradictions import Contradiction, contradiction, contradictions
from registry.manifest.input_schemas import input_faults, schema_faults
from registry.models import (
    Alias,
    AliasMove,
    AssetWorkflow,
    ClosureDependency,
    ClosureEntry,
    EvaluationRecord,
    Release,
    ReleaseBlob,
)
from registry.states import HOLDS_VERSION, LOADABLE, STRICTNESS, InFlight, ReleaseState

__all__ = [
    "AliasView",
    "Contradiction",
    "ReleaseView",
    "contradiction",
    "contradictions",
    "input_faults",
    "schema_faults",
]


@dataclass(frozen=True, slots=True)
class ReleaseView:
    """A release as the other apps see it. `workflow` is the definition that was asked for, if one was."""

    id: UUID
    hash: str
    asset: str
    version: str
    state: str
    author: str
    author_person: str
    repository: str
    commit: str
    workflow: dict[str, Any]
    approval_id: UUID | None


@dataclass(frozen=True, slots=True)
class AliasView:
    """Say what an alias names, or named at a moment."""

    asset: str
    alias: str
    release_id: UUID
    release_version: str
    version: int
    moved_by: str
    moved_at: datetime


def releases() -> QuerySet[Release]:
    """Return all releases of the tenant in scope, with what a page shows of each."""
    rows: QuerySet[Release] = Release.objects.select_related("asset", "closure", "evaluation")
    return rows


def find_release(release_id: UUID) -> Release:
    """Return the row, for this app's own rooms. Raises ReleaseNotFound."""
    row = releases().filter(pk=release_id).first()
    if row is None:
        raise ReleaseNotFound("There is no such release here.")
    return row


def view(row: Release, workflow: Mapping[str, Any] | None = None) -> ReleaseView:
    return ReleaseView(
        id=row.id,
        hash=row.closure.hash if row.closure else "",
        asset=row.asset.name,
        version=row.semver,
        state=str(row.state),
        author=row.author,
        author_person=row.author_person,
        repository=row.repository,
        commit=row.commit,
        workflow=dict(workflow or {}),
        approval_id=row.approval_id,
    )


def release(release_id: UUID) -> ReleaseView:
    """Return a release by its id. Raises ReleaseNotFound."""
    return view(find_release(release_id))


def resolve(workflow_id: str, *, alias: str | None = None, release_id: UUID | None = None) -> ReleaseView:
    """Return the one Published release that a submission means, with the workflow's definition.

    Raises UnknownWorkflow, UnknownAlias or ReleaseNotPublished, each with the place in the submission.
    """
    owner = AssetWorkflow.objects.filter(workflow_id=workflow_id).first()
    if owner is None:
        raise _unknown_workflow(workflow_id)
    row = _aliased(owner.asset_id, alias) if alias is not None else _named(owner.asset_id, release_id)
    if row.state != ReleaseState.PUBLISHED:
        pointer = "/releaseAlias" if alias is not None else "/releaseId"
        raise not_published(f"The release {row.asset.name}@{row.semver} is {row.state}.", pointer)
    workflow = _workflow(row, workflow_id)
    if workflow is None:
        raise _unknown_workflow(workflow_id, f" in {row.asset.name}@{row.semver}")
    return view(row, workflow)


def _aliased(asset_id: UUID, alias: str) -> Release:
    release_id = (
        Alias.objects.filter(asset_id=asset_id, name=alias).values_list("release_id", flat=True).first()
    )
    if release_id is None:
        known = Alias.objects.filter(asset_id=asset_id).order_by("name").values_list("name", flat=True)[:20]
        problem = (
            f"There is no alias {alias} of this workflow's asset. There is: {', '.join(known) or 'none'}."
        )
        raise UnknownAlias(problem, errors=[FieldError("/releaseAlias", problem)])
    return find_release(release_id)


def _named(asset_id: UUID, release_id: UUID | None) -> Release:
    row = releases().filter(pk=release_id, asset_id=asset_id).first() if release_id else None
    if row is None:
        raise not_published("There is no such release of this workflow's asset.", "/releaseId")
    return row


def pinnable(workflow_id: str) -> list[tuple[ReleaseView, tuple[str, ...]]]:
    """Return the releases that a submission of this workflow could pin, newest first, with their aliases."""
    assets = AssetWorkflow.objects.filter(workflow_id=workflow_id).values("asset_id")
    rows = releases().filter(asset_id__in=assets, state=ReleaseState.PUBLISHED).order_by("-published_at")[:20]
    named: dict[UUID, list[str]] = {}
    for release_id, name in Alias.objects.filter(asset_id__in=assets).values_list("release_id", "name"):
        named.setdefault(release_id, []).append(name)
    return [
        (view(row), tuple(sorted(named.get(row.id, ()))))
        for row in rows
        if _workflow(row, workflow_id) is not None
    ]


def known_workflows() -> list[str]:
    """Return the names of the tenant's workflows, in order."""
    return list(AssetWorkflow.objects.order_by("workflow_id").values_list("workflow_id", flat=True)[:500])


def workflows_of(release_id: UUID) -> list[str]:
    """Return the names of the workflows that a release holds; none of one whose commit is not read yet."""
    held = Release.objects.filter(pk=release_id).values("closure_id")
    rows = ClosureEntry.objects.filter(closure_id__in=held, kind="workflow")
    return list(rows.order_by("item_id").values_list("item_id", flat=True))


def workflows_left(release_id: UUID, without: Collection[UUID]) -> frozenset[str]:
    """Return the workflows of the asset's other Published releases, those in `without` aside."""
    asset = Release.objects.filter(pk=release_id).values("asset_id")
    others = Release.objects.filter(asset_id__in=asset, state=ReleaseState.PUBLISHED)
    others = others.exclude(pk=release_id).exclude(pk__in=list(without))
    rows = ClosureEntry.objects.filter(closure_id__in=others.values("closure_id"), kind="workflow")
    return frozenset(rows.values_list("item_id", flat=True).distinct())


def profiles_of_workflow(workflow_id: str) -> frozenset[str]:
    """Return the model profiles of the Published releases with this workflow. Raises UnknownWorkflow."""
    releases = pinnable(workflow_id)
    if not releases:
        raise _unknown_workflow(workflow_id)
    return frozenset(name for release, _ in releases for name in model_profiles(release.id))


def _unknown_workflow(workflow_id: str, where: str = "") -> UnknownWorkflow:
    problem = f"There is no workflow {workflow_id}{where}. Name one that a Published release holds."
    return UnknownWorkflow(problem, errors=[FieldError("/workflowId", problem)])


def not_published(problem: str, pointer: str) -> ReleaseNotPublished:
    return ReleaseNotPublished(problem, errors=[FieldError(pointer, problem)])


def _workflow(row: Release, workflow_id: str) -> dict[str, Any] | None:
    workflows: list[dict[str, Any]] = row.closure.definition["workflows"] if row.closure else []
    return next((item for item in workflows if item["workflowId"] == workflow_id), None)


def workflow(release_id: UUID, workflow_id: str) -> dict[str, Any]:
    """Return a workflow's definition in a release, whatever its state now: runs keep what they pinned."""
    definition = _workflow(find_release(release_id), workflow_id)
    if definition is None:
        raise _unknown_workflow(workflow_id)
    return definition


def entries(closure_id: UUID) -> list[ClosureFile]:
    """Return the pieces of a closure, in their canonical order."""
    rows = ClosureEntry.objects.filter(closure_id=closure_id)
    return sorted(
        ClosureFile(row.kind, row.item_id, row.path, row.sha256, row.size, row.side_effect_class)
        for row in rows
    )


def manifest(release_id: UUID) -> dict[str, Any]:
    """Return what a release says it is: its manifest, its files and the pieces of its hash."""
    return _manifest(find_release(release_id))


def _manifest(row: Release) -> dict[str, Any]:
    if row.closure is None:
        raise ReleaseNotLoadable("The release has no manifest yet: its closure is not resolved.")
    pieces = entries(row.closure.id)
    files = {piece.path: piece for piece in pieces if piece.path}
    return {
        "releaseId": str(row.id),
        "hash": row.closure.hash,
        "asset": row.asset.name,
        "version": row.semver,
        "sourceCommit": row.commit,
        "manifest": row.closure.definition,
        "files": [
            {"path": path, "sha256": piece.sha256, "size": piece.size}
            for path, piece in sorted(files.items())
        ],
        "entries": [piece.to_json() for piece in pieces],
    }


def loadable(release_id: UUID) -> bool:
    """Return whether a worker may load it: Published or Deprecated, and nothing that it needs is Revoked."""
    row = Release.objects.filter(pk=release_id, state__in=LOADABLE).values("closure_id").first()
    return row is not None and not _needs_revoked(row["closure_id"])


def is_unloadable(release_id: OuterRef) -> Exists:
    """Return "not `loadable`" as a condition of the database on rows that name a release."""
    revoked = ClosureDependency.objects.filter(closure_id=OuterRef("closure_id"))
    revoked = revoked.filter(release__state=ReleaseState.REVOKED)
    rows = Release.objects.filter(pk=release_id)
    return Exists(rows.filter(~Q(state__in=sorted(LOADABLE)) | Exists(revoked)))


def revoked_needs(closure_ids: Collection[UUID | None]) -> dict[UUID, list[str]]:
    """Return by closure the releases that it needs and that load no more; others are not in it."""
    rows = ClosureDependency.objects.filter(closure_id__in=closure_ids)
    rows = rows.exclude(release__state__in=LOADABLE)
    names: dict[UUID, list[str]] = {}
    for closure_id, asset, semver in rows.order_by("release__asset__name", "release__semver").values_list(
        "closure_id", "release__asset__name", "release__semver"
    ):
        names.setdefault(closure_id, []).append(f"{asset}@{semver}")
    return names


def format_needs(gone: Sequence[str]) -> str:
    """Write as a sentence that a release needs these."""
    more = f" and {len(gone) - 5} more" if len(gone) > 5 else ""
    return f"It needs {', '.join(gone[:5])}{more}, which {'is' if len(gone) == 1 else 'are'} Revoked."


def _needs_revoked(closure_id: UUID | None) -> bool:
    needed = ClosureDependency.objects.filter(closure_id=closure_id)
    return bool(needed.filter(release__state=ReleaseState.REVOKED).exists())


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """Say what becomes of a release's runs since it, or one that it needs, was taken out of use."""

    release: str
    state: str
    in_flight: str
    reason: str


def withdrawal_of(release_id: UUID) -> Withdrawal | None:
    """Return what becomes of runs that pinned this release, by the strictest withdrawal; None without any.

    A Deprecated dependency still loads, so only a Revoked one reaches those who need it.
    """
    pinned = Release.objects.filter(pk=release_id).values("closure_id")
    needed = ClosureDependency.objects.filter(closure_id__in=pinned).values("release_id")
    own = Q(pk=release_id, state__in=[ReleaseState.DEPRECATED, ReleaseState.REVOKED])
    rows = releases().filter(own | Q(pk__in=needed, state=ReleaseState.REVOKED))
    withdrawals = [
        Withdrawal(f"{row.asset.name}@{row.semver}", str(row.state), row.in_flight, row.ending_reason)
        for row in rows
    ]
    return max(
        withdrawals, key=lambda withdrawal: STRICTNESS.index(InFlight(withdrawal.in_flight)), default=None
    )


def releases_of_commit(commit: str, most: int = 50) -> list[UUID]:
    """Return the newest releases whose commit begins so."""
    rows = Release.objects.filter(commit__startswith=commit).order_by("-created_at", "-id")
    return list(rows.values_list("pk", flat=True)[:most])


def resting_on(release_id: UUID) -> list[UUID]:
    """Return the release and every one whose closure needs it: whose runs its revocation reaches."""
    needing = ClosureDependency.objects.filter(release_id=release_id).values("closure_id")
    rows = Release.objects.filter(Q(pk=release_id) | Q(closure_id__in=needing))
    return list(rows.order_by("pk").values_list("pk", flat=True))


def load_release(release_id: UUID) -> dict[str, Any]:
    """Return the manifest of a loadable release. Raises ReleaseNotFound or ReleaseNotLoadable."""
    return _manifest(_require_loadable(release_id))


def file_content(release_id: UUID, sha256: str) -> bytes:
    """Return one file of a loadable release by its hash, with or without `sha256:` before its digits.

    Raises ReleaseNotLoadable, or NotFound for a hash that is none, or another release's.
    """
    wanted = f"sha256:{sha256.removeprefix('sha256:')}"
    closure_id = _require_loadable(release_id).closure_id
    blob = ReleaseBlob.objects.filter(sha256=wanted).first()
    if blob is None or not ClosureEntry.objects.filter(closure_id=closure_id, sha256=wanted).exists():
        raise NotFound("The release has no file with this hash.")
    return bytes(blob.content)


def _require_loadable(release_id: UUID) -> Release:
    row = find_release(release_id)
    if row.state not in LOADABLE:
        raise ReleaseNotLoadable(f"The release {row.asset.name}@{row.semver} is {row.state}.")
    if _needs_revoked(row.closure_id):
        raise ReleaseNotLoadable(f"The release {row.asset.name}@{row.semver} needs a Revoked release.")
    return row


def model_profiles(release_id: UUID) -> tuple[str, ...]:
    """Return the model profiles that a release knows."""
    row = find_release(release_id)
    profiles = row.closure.definition["modelProfiles"] if row.closure else []
    return tuple(profile["modelProfileId"] for profile in profiles)


def tenant_of(release_id: UUID) -> str | None:
    """Return the tenant of a release: for a worker's call, which names none."""
    with scanning() as cursor:
        cursor.execute("SELECT tenant_id FROM registry_release WHERE id = %s", [release_id])
        row = cursor.fetchone()
    return str(row[0]) if row else None


def dependency_releases(names: Iterable[str]) -> dict[str, Release]:
    """Return the releases behind `name@version`, as far as they hold their version."""
    by_name: dict[str, Release] = {}
    for name in names:
        asset, _, semver = name.partition("@")
        row = releases().filter(asset__name=asset, semver=semver, state__in=HOLDS_VERSION).first()
        if row is not None:
            by_name[name] = row
    return by_name


def evaluations(row: Release) -> list[EvaluationRecord]:
    """Return the evaluations of a release, newest first."""
    return list(EvaluationRecord.objects.filter(closure_id=row.closure_id).order_by("-id")[:100])


def aliases_of(release_id: UUID) -> list[str]:
    """Return the aliases that name a release now."""
    return list(Alias.objects.filter(release_id=release_id).order_by("name").values_list("name", flat=True))


def called_aliases(keys: Sequence[UUID]) -> dict[UUID, str]:
    """Return what these aliases are called: their asset's name and their own."""
    rows = Alias.objects.filter(pk__in=keys).values_list("pk", "asset__name", "name")
    return {key: f"{asset} {name}" for key, asset, name in rows}


def alias(asset: str, name: str, *, at: datetime | None = None) -> AliasView:
    """Return what an alias names now, or named at a moment. Raises NotFound."""
    moves = AliasMove.objects.filter(alias__asset__name=asset, alias__name=name)
    if at is not None:
        moves = moves.filter(moved_at__lte=at)
    row = moves.select_related("release").order_by("-version").first()
    if row is None:
        raise NotFound(f"There is no alias {name} of {asset}" + (" at that time." if at else "."))
    return AliasView(asset, name, row.release_id, row.release.semver, row.version, row.moved_by, row.moved_at)
