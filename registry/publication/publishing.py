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
    """Who goes which way: a commit, its author, and the reviewer who decides."""

    author: Context
    reviewer: Context
    repository: str
    commit: str
    manifest_path: str
    tell: Tell


def publish(way: PublicationPath) -> Published:
    """Submit, resolve, evaluate, review and decide; skips what is already done.

    Raises PublicationStopped, or the refusal of the command that said no.
    """
    source = check_repository(way.repository, settings.FACTORY_GIT_LOCAL_ROOTS)
    with fetched(source, way.commit) as commit:
        _, definition = read_manifest(commit, way.manifest_path)
    asset, version = definition["asset"], definition["version"]
    standing = _standing(way.author, asset, version)
    if standing is not None and standing.commit != way.commit:
        way.tell(
            f"{asset}@{version}: already there, from {standing.commit[:12]}; a new version takes a new number"
        )
    if standing is not None and standing.state != ReleaseState.IN_REVIEW:
        return _present(standing)
    release_id = standing.id if standing else _draft(way, asset, version)
    if standing is None:
        _evaluate(way, release_id, definition)
        request_review(way.author, release_id=release_id)
        way.tell(f"{asset}@{version}: in review")
    _approve(way, release_id)
    with reading(way.author):
        done = release(release_id)
    return Published(done.id, done.hash, done.asset, done.version, fresh=True)


def _standing(ctx: Context, asset: str, version: str) -> Release | None:
    with reading(ctx):
        found = releases().filter(asset__name=asset, semver=version, state__in=HOLDS_VERSION)
        return found.first()


def _present(row: Release) -> Published:
    if row.state != ReleaseState.PUBLISHED:
        raise PublicationStopped(
            f"{row.asset.name}@{row.semver} is {row.state}: raise the manifest's version to publish again."
        )
    shown = view(row)
    return Published(shown.id, shown.hash, shown.asset, shown.version, fresh=False)


def _draft(way: PublicationPath, asset: str, version: str) -> UUID:
    """The candidate with its closure; one that an earlier try left behind is taken up again."""
    try:
        made = submit_release(
            way.author,
            asset=asset,
            version=version,
            repository=way.repository,
            commit=way.commit,
            manifest_path=way.manifest_path,
        )
    except ReleaseAlreadySubmitted as present:
        made = present.extra["releaseId"]
    release_id = UUID(str(made))
    resolve(way.author.tenant_id, release_id)
    with reading(way.author):
        row = find_release(release_id)
        if row.closure is None:
            raise PublicationStopped(f"{asset}@{version}: {row.resolution_error}")
        way.tell(f"{asset}@{version}: {row.resolved.hash[:19]}… from {row.commit[:12]}")
    return release_id


def _evaluate(way: PublicationPath, release_id: UUID, definition: dict[str, Any]) -> None:
    with reading(way.author):
        row = find_release(release_id)
        release_hash, files = row.resolved.hash, stored_files(row.resolved)
    found = run_suite(definition, files)
    made = record_evaluation(
        way.author,
        release_id=release_id,
        release_hash=release_hash,
        suite=found.suite,
        suite_version=found.suite_version,
        scores=found.scores,
        evidence_hash=found.evidence_hash,
    )
    way.tell(f"evaluation {found.suite}@{found.suite_version}: {made['verdict']}, {_told(found)}")
    if made["verdict"] != EvaluationVerdict.PASS:
        raise PublicationStopped(f"The evaluation does not pass: {_told(found)}\n{found.said}")


def _told(found: Evaluated) -> str:
    return found.problem or ", ".join(f"{name} {score:g}" for name, score in sorted(found.scores.items()))


def stored_files(closure: Closure) -> dict[str, bytes]:
    """The contents of a closure's files by their path, as they were stored."""
    paths = dict(ClosureEntry.objects.filter(closure=closure).exclude(path="").values_list("path", "sha256"))
    blobs = ReleaseBlob.objects.filter(sha256__in=set(paths.values())).values_list("sha256", "content")
    contents = {sha256: bytes(content) for sha256, content in blobs}
    return {path: contents[sha256] for path, sha256 in paths.items()}


def _approve(way: PublicationPath, release_id: UUID) -> None:
    """Approve exactly what is asked, as the reviewer."""
    house = system(way.reviewer.tenant_id, "publish_release", project_id=way.reviewer.project_id)
    with reading(house):
        approval_id = find_release(release_id).approval_id
        if approval_id is None:
            raise PublicationStopped("The release is under no review.")
        asked = approval(approval_id)
    try:
        decide(
            way.reviewer,
            approval_id=asked.id,
            decision="approve",
            version=asked.version,
            proposal_hash=asked.proposal_hash,
            reason="Published with the platform.",
        )
    except DomainError as refusal:
        raise PublicationStopped(f"The reviewer could not approve: {refusal.detail}") from refusal
