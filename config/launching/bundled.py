"""The release that comes with the product: published from a commit of this repository, as any other is."""

import subprocess
from pathlib import Path
from typing import Any
from uuid import UUID

import yaml
from django.conf import settings

from approvals.commands import decide_approval
from approvals.selectors import approval
from config.launching.people import acting
from factory.context import Context
from factory.embedded.system import EmbeddedError
from factory.errors import DomainError
from factory.tenancy import reading
from registry import selectors
from registry.commands.reviewing import record_evaluation, request_review
from registry.commands.submitting import submit_release
from registry.errors import ReleaseAlreadySubmitted
from registry.evaluation import run_suite
from registry.git import fetched
from registry.operations import LATEST
from registry.resolving import read_files, read_manifest, resolve
from registry.selectors import ReleaseView
from registry.sources import check_repository
from registry.states import ReleaseState

WORKFLOW = "repository-assessment"
MANIFEST = "assessment/factory.yaml"


def publish_bundled(tenant_id: str, project_id: UUID) -> dict[str, Any]:
    """Publish the version of the current commit, unless it has been published already.

    Whoever submits it cannot approve it: the admin puts it forward, the reviewer decides.
    """
    author, reviewer = (acting(part, tenant_id, project_id) for part in ("admin", "reviewer"))
    commit = current_commit(settings.BASE_DIR)
    asset, version = _named(settings.BASE_DIR, commit)
    found = _published(author, version)
    if found is None:
        release_id = _submit(author, asset, version, commit)
        resolve(tenant_id, release_id)
        _evaluate(author, _read(author, release_id))
        _review(author, reviewer, release_id)
        found = _read(author, release_id)
    return {
        "id": str(found.id), "asset": found.asset, "version": found.version, "hash": found.hash,
        "commit": found.commit, "alias": LATEST, "workflowId": WORKFLOW,
    }  # fmt: skip


def current_commit(root: Path) -> str:
    try:
        return git(root, "rev-parse", "--verify", "HEAD^{commit}").strip()
    except EmbeddedError as error:
        raise EmbeddedError(
            f"{root} has no Git commit, and a release is published from one. Get the product with "
            f"`git clone`, or make a commit here. ({error})"
        ) from error


def git(root: Path, *arguments: str) -> str:
    """Run git in `root`, also when somebody else owns the folder: it is the one that we run from."""
    done = subprocess.run(
        ["git", "-c", f"safe.directory={root}", "-C", str(root), *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise EmbeddedError((done.stderr.strip() or "git failed").splitlines()[-1])
    return done.stdout


def _named(root: Path, commit: str) -> tuple[str, str]:
    found = yaml.safe_load(git(root, "show", f"{commit}:{MANIFEST}"))
    return str(found["asset"]), str(found["version"])


def _published(ctx: Context, version: str) -> ReleaseView | None:
    with reading(ctx):
        try:
            found = selectors.resolve(WORKFLOW, alias=LATEST)
        except DomainError:
            return None
    return found if found.version == version else None


def _read(ctx: Context, release_id: UUID) -> ReleaseView:
    with reading(ctx):
        return selectors.release(release_id)


def _submit(ctx: Context, asset: str, version: str, commit: str) -> UUID:
    try:
        return UUID(
            submit_release(
                ctx, asset=asset, version=version, repository=str(settings.BASE_DIR), commit=commit,
                manifest_path=MANIFEST,
            )
        )  # fmt: skip
    except ReleaseAlreadySubmitted as already:
        return UUID(str(already.extra["releaseId"]))  # begun before, and interrupted


def _evaluate(ctx: Context, release: ReleaseView) -> None:
    """Run the suite that the release brings, on exactly its files, and record what it found."""
    if release.state != ReleaseState.DRAFT:
        return
    source = check_repository(release.repository, settings.FACTORY_GIT_LOCAL_ROOTS)
    with fetched(source, release.commit) as commit:
        _, definition = read_manifest(commit, MANIFEST)
        files = read_files(commit, MANIFEST, definition)
    found = run_suite(definition, files)
    if found.problem:
        raise EmbeddedError(f"The evaluation of the bundled release failed: {found.problem}\n{found.said}")
    record_evaluation(
        ctx,
        release_id=release.id,
        release_hash=release.hash,
        suite=found.suite,
        suite_version=found.suite_version,
        scores=found.scores,
        evidence_hash=found.evidence_hash,
    )


def _review(author: Context, reviewer: Context, release_id: UUID) -> None:
    release = _read(author, release_id)
    if release.state == ReleaseState.DRAFT:
        request_review(author, release_id=release_id)
        release = _read(author, release_id)
    if release.state == ReleaseState.IN_REVIEW and release.approval_id:
        with reading(reviewer):
            asked = approval(release.approval_id)
        decide_approval(
            reviewer,
            approval_id=asked.id,
            decision="approve",
            version=asked.version,
            proposal_hash=asked.proposal_hash,
            reason="The suite passes on the sample repository.",
        )
