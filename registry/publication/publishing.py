"""A commit's whole way to Published in one go, by the same commands that people use over the API.

For the platform's own bundled releases: an operator who runs this trusts the repository, because the
release's evaluation suite is run on this machine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings

from approvals.operations import decide
from approvals.selectors import approval
from factory.kernel.context import Context, system
from factory.kernel.errors import DomainError
from factory.kernel.tenancy import reading
from registry.commands import record_evaluation, request_review, submit_release
from registry.errors import ReleaseAlreadySubmitted
from registry.models import Closure, ClosureEntry, Release, ReleaseBlob
from registry.publication.evaluation import Evaluated, run_suite
from registry.publication.resolving import read_manifest, resolve
from registry.selectors import find_release, release, releases, view
from registry.source.git import fetched
from registry.source.locations import check_repository
from registry.states import HOLDS_VERSION, EvaluationVerdict, ReleaseState

Tell = Callable[[str], object]


class PublicationStopped(Exception):
    """The way to Published ends here; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Published:
    """The release at the end of its way; `fresh` unless it had been published before."""

    release_id: UUID
    hash: str
    asset: str
    version: str
    fresh: bool


@dataclass(frozen=True, slots=True)
class PublicationPath:
    """Name what is published, and by whom: a commit, its author, and the reviewer who decides."""

    author: Context
    reviewer: Context
    repository: str
    commit: str
    manifest_path: str
    tell: Tell


def publish(publication: PublicationPath) -> Published:
    """Submit, resolve, evaluate, review and decide; skips what is already done.

    Raises PublicationStopped, or the refusal of the command that said no.
    """
    source = check_repository(publication.repository, settings.FACTORY_GIT_LOCAL_ROOTS)
    with fetched(source, publication.commit) as commit:
        _, definition = read_manifest(commit, publication.manifest_path)
    asset, version = definition["asset"], definition["version"]
    holder = _holder_of(publication.author, asset, version)
    if holder is not None and holder.commit != publication.commit:
        publication.tell(
            f"{asset}@{version}: already there, from {holder.commit[:12]}; a new version takes a new number"
        )
    if holder is not None and holder.state != ReleaseState.IN_REVIEW:
        return _present(holder)
    release_id = holder.id if holder else _draft(publication, asset, version)
    if holder is None:
        _evaluate(publication, release_id, definition)
        request_review(publication.author, release_id=release_id)
        publication.tell(f"{asset}@{version}: in review")
    _approve(publication, release_id)
    with reading(publication.author):
        done = release(release_id)
    return Published(done.id, done.hash, done.asset, done.version, fresh=True)


def _holder_of(ctx: Context, asset: str, version: str) -> Release | None:
    with reading(ctx):
        rows = releases().filter(asset__name=asset, semver=version, state__in=HOLDS_VERSION)
        return rows.first()


def _present(row: Release) -> Published:
    if row.state != ReleaseState.PUBLISHED:
        raise PublicationStopped(
            f"{row.asset.name}@{row.semver} is {row.state}: raise the manifest's version to publish again."
        )
    shown = view(row)
    return Published(shown.id, shown.hash, shown.asset, shown.version, fresh=False)


def _draft(publication: PublicationPath, asset: str, version: str) -> UUID:
    """Submit the candidate and resolve its closure; take up one that an earlier attempt left behind."""
    try:
        submitted = submit_release(
            publication.author,
            asset=asset,
            version=version,
            repository=publication.repository,
            commit=publication.commit,
            manifest_path=publication.manifest_path,
        )
    except ReleaseAlreadySubmitted as present:
        submitted = present.extra["releaseId"]
    release_id = UUID(str(submitted))
    resolve(publication.author.tenant_id, release_id)
    with reading(publication.author):
        row = find_release(release_id)
        if row.closure is None:
            raise PublicationStopped(f"{asset}@{version}: {row.resolution_error}")
        publication.tell(f"{asset}@{version}: {row.resolved.hash[:19]}… from {row.commit[:12]}")
    return release_id


def _evaluate(publication: PublicationPath, release_id: UUID, definition: dict[str, Any]) -> None:
    with reading(publication.author):
        row = find_release(release_id)
        release_hash, files = row.resolved.hash, stored_files(row.resolved)
    result = run_suite(definition, files)
    recorded = record_evaluation(
        publication.author,
        release_id=release_id,
        release_hash=release_hash,
        suite=result.suite,
        suite_version=result.suite_version,
        scores=result.scores,
        evidence_hash=result.evidence_hash,
    )
    publication.tell(
        f"evaluation {result.suite}@{result.suite_version}: {recorded['verdict']}, {_format_scores(result)}"
    )
    if recorded["verdict"] != EvaluationVerdict.PASS:
        raise PublicationStopped(f"The evaluation does not pass: {_format_scores(result)}\n{result.said}")


def _format_scores(result: Evaluated) -> str:
    return result.problem or ", ".join(f"{name} {score:g}" for name, score in sorted(result.scores.items()))


def stored_files(closure: Closure) -> dict[str, bytes]:
    """Return the contents of a closure's files by their path, as they were stored."""
    paths = dict(ClosureEntry.objects.filter(closure=closure).exclude(path="").values_list("path", "sha256"))
    blobs = ReleaseBlob.objects.filter(sha256__in=set(paths.values())).values_list("sha256", "content")
    contents = {sha256: bytes(content) for sha256, content in blobs}
    return {path: contents[sha256] for path, sha256 in paths.items()}


def _approve(publication: PublicationPath, release_id: UUID) -> None:
    """Approve exactly what is asked, as the reviewer."""
    ctx = system(
        publication.reviewer.tenant_id, "publish_release", project_id=publication.reviewer.project_id
    )
    with reading(ctx):
        approval_id = find_release(release_id).approval_id
        if approval_id is None:
            raise PublicationStopped("The release is under no review: ask for one first (RequestReview).")
        request = approval(approval_id)
    try:
        decide(
            publication.reviewer,
            approval_id=request.id,
            decision="approve",
            version=request.version,
            proposal_hash=request.proposal_hash,
            reason="Published with the platform.",
        )
    except DomainError as refusal:
        raise PublicationStopped(f"The reviewer could not approve: {refusal.detail}") from refusal
