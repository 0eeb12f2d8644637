"""A candidate is evaluated, and put before a reviewer."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from approvals.operations import ApprovalDraft, open_request
from approvals.selectors import current_policy
from approvals.states import ActionClass, SubjectType
from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.recording import record, save
from registry.commands.inputs import hash_faults, refuse, score_faults
from registry.errors import ClosureNotResolved, EvaluationMismatch, EvaluationMissing, ReleaseNotInState
from registry.models import EvaluationRecord, Release
from registry.operations import lock_release
from registry.states import EvaluationVerdict, ReleaseState
from registry.subjects import check_publishable, proposal_of


@command("RecordEvaluation")
def record_evaluation(
    ctx: Context,
    *,
    release_id: UUID,
    release_hash: str,
    suite: str,
    suite_version: str,
    scores: Mapping[str, Any],
    evidence_hash: str,
) -> dict[str, str]:
    """Keep what a suite found about a Draft. Returns its id and the verdict.

    The verdict is ours: every threshold of the manifest has a score that reaches it. The newest
    record counts. Guards: a resolved closure with exactly this hash, the suite that the manifest
    names. Emits: nothing. Errors: InvalidInput, ReleaseNotFound, ReleaseNotInState,
    ClosureNotResolved, EvaluationMismatch.
    """
    faults = hash_faults(release_hash, "/releaseHash") + hash_faults(evidence_hash, "/evidenceHash")
    refuse(faults + score_faults(scores), "The evaluation is not valid.")
    release = _draft(ctx, release_id)
    named = release.resolved.definition["evaluation"]
    if release.resolved.hash != release_hash:
        raise EvaluationMismatch("The evaluation is of another hash than the release's.")
    if (named["suite"], named["version"]) != (suite, suite_version):
        raise EvaluationMismatch(f"The manifest asks for {named['suite']}@{named['version']}.")
    evaluation = EvaluationRecord(
        closure=release.closure,
        release_hash=release_hash,
        suite=suite,
        suite_version=suite_version,
        scores=dict(scores),
        thresholds=named["thresholds"],
        verdict=verdict_of(scores, named["thresholds"]),
        evidence_hash=evidence_hash,
        producer=ctx.actor.subject,
        recorded_at=now(),
    )
    save(evaluation)
    detail = {"evaluationId": str(evaluation.id), "verdict": str(evaluation.verdict)}
    record(ctx, release, "EvaluationRecorded", detail=detail)
    return detail


def verdict_of(scores: Mapping[str, Any], thresholds: Mapping[str, Any]) -> str:
    """`pass` when each threshold has a score that reaches it."""
    reached = all(name in scores and scores[name] >= least for name, least in thresholds.items())
    return str((EvaluationVerdict.PASS if reached else EvaluationVerdict.FAIL).value)


def _draft(ctx: Context, release_id: UUID) -> Release:
    release = lock_release(ctx, release_id)
    if release.state != ReleaseState.DRAFT:
        raise ReleaseNotInState(f"The release is {release.state}, and no Draft any more.")
    if release.closure is None:
        raise ClosureNotResolved(
            release.resolution_error or "The commit has not been fetched yet; try again in a moment."
        )
    return release


@command("RequestReview")
def request_review(ctx: Context, *, release_id: UUID) -> dict[str, str]:
    """Put a Draft before the reviewers of the caller's project. Returns the approval's id.

    Opens the approval of class publication; neither who asks nor the author, nor whoever answers for
    either, can decide it. Guards: a resolved closure; the newest evaluation of exactly this hash passes;
    the version, the workflows and the dependencies are free to be published; the policy does not deny.
    Emits: ApprovalRequested. Errors: ReleaseNotFound, ReleaseNotInState, ClosureNotResolved,
    EvaluationMissing, VersionTaken, WorkflowTaken, DependencyNotPublished, and those of open_request.
    """
    release = _draft(ctx, release_id)
    evaluation = _passing(release)
    check_publishable(release)
    draft = ApprovalDraft(
        subject_type=SubjectType.PUBLICATION,
        subject_id=release.id,
        project_id=ctx.project_id,
        action_class=ActionClass.PUBLICATION,
        proposal=proposal_of(release, evaluation),
        summary=f"publish {release.asset.name}@{release.semver} from {release.commit[:12]}",
        policy=current_policy(ctx),
        requested_by=ctx.actor.subject,
        requester_person=ctx.actor.person,
        author_person=release.author_person,
        release_id=release.id,
    )
    approval = open_request(ctx, draft)
    release.open_review(approval_id=approval.id, evaluation=evaluation)
    record(ctx, release, "ReviewRequested", detail={"approvalId": str(approval.id)})
    return {"approvalId": str(approval.id)}


def _passing(release: Release) -> EvaluationRecord:
    newest: EvaluationRecord | None = (
        EvaluationRecord.objects.filter(closure_id=release.closure_id).order_by("-id").first()
    )
    if newest is None:
        raise EvaluationMissing("The release has not been evaluated.")
    if newest.verdict != EvaluationVerdict.PASS or newest.release_hash != release.resolved.hash:
        raise EvaluationMissing("The newest evaluation does not pass.")
    return newest
