"""A release as the subject of an approval: its review opens one, the answer moves it in the same commit."""

from typing import Any
from uuid import UUID

from django.db.models import BooleanField, Exists, F, Func, OuterRef, Q, QuerySet
from django.db.models.functions import JSONArray, JSONObject

from approvals import subjects
from approvals.selectors import ApprovalView
from approvals.states import ApprovalState, SubjectType
from approvals.subjects import Timeline
from factory.kernel.clock import now
from factory.kernel.context import Context
from factory.kernel.errors import DomainError, Gone
from factory.kernel.hashing import digest
from factory.kernel.recording import record, save
from registry.errors import DependencyNotPublished, VersionTaken, WorkflowTaken
from registry.events import AssetReleasePublished
from registry.models import AssetWorkflow, ClosureDependency, EvaluationRecord, Release
from registry.operations import LATEST, lock_release, point_alias
from registry.selectors import entries, find_release, needs_in_words, revoked_needs
from registry.selectors.timeline import story_of_release
from registry.states import HOLDS_VERSION, LOADABLE, ReleaseState

SENT_BACK = {
    ApprovalState.REJECTED: "ApprovalRejected",
    ApprovalState.EXPIRED: "ApprovalExpired",
    ApprovalState.STALE: "ChangesRequested",
}


class ReviewOver(Gone):
    """The release is not under this review any more."""

    code = "review-over"
    title = "The review is over"


def proposal_of(release: Release, evaluation: EvaluationRecord) -> dict[str, Any]:
    """What the reviewer signs: the manifest, every file by its hash, and what the evaluation found."""
    pieces = [piece.to_json() for piece in entries(release.resolved.id)]
    return {
        "kind": "manifest",
        "releaseId": str(release.id),
        "asset": release.asset.name,
        "version": release.semver,
        "repository": release.repository,
        "sourceCommit": release.commit,
        "releaseHash": release.resolved.hash,
        "manifestDigest": digest(release.resolved.definition),
        "manifest": release.resolved.definition,
        "entries": pieces,
        "evaluation": {
            "evaluationId": str(evaluation.id),
            "suite": evaluation.suite,
            "version": evaluation.suite_version,
            "scores": evaluation.scores,
            "thresholds": evaluation.thresholds,
            "verdict": evaluation.verdict,
            "evidenceHash": evaluation.evidence_hash,
            "producer": evaluation.producer,
        },
    }


def check_publishable(release: Release) -> None:
    """Raise for what would stand in the way of the publication. Needs the asset's lock."""
    rivals = Release.objects.filter(asset_id=release.asset_id, semver=release.semver, state__in=HOLDS_VERSION)
    if rivals.exclude(pk=release.pk).exists():
        raise VersionTaken(f"Another commit already holds {release.asset.name}@{release.semver}.")
    owned = AssetWorkflow.objects.select_related("asset").filter(workflow_id__in=_workflow_ids(release))
    taken = owned.exclude(asset_id=release.asset_id).order_by("workflow_id").first()
    if taken is not None:
        raise WorkflowTaken(f"The workflow {taken.workflow_id} belongs to the asset {taken.asset.name}.")
    gone = revoked_needs([release.resolved.id]).get(release.resolved.id)
    if gone:
        raise DependencyNotPublished(needs_in_words(gone))


def _workflow_ids(release: Release) -> list[str]:
    return sorted(item["workflowId"] for item in release.resolved.definition["workflows"])


class Publication:
    """The subject: locked before the approval, judged under the locks, moved with the decision."""

    def lock(self, ctx: Context, subject_id: UUID, run_id: UUID | None) -> None:
        """The asset and the release, and the right to each workflow id that is new."""
        lock_release(ctx, subject_id)

    def still_current(self, ctx: Context, view: ApprovalView) -> DomainError | None:
        return _outdated(find_release(view.subject_id), view)

    def stops(self, ctx: Context, view: ApprovalView) -> DomainError | None:
        return _outdated(find_release(view.subject_id), view)

    def stopped(self) -> Q:
        return Q(Exists(_outdated_rows().filter(pk=OuterRef("subject_id"))))

    def decided(self, ctx: Context, view: ApprovalView) -> None:
        release = find_release(view.subject_id)
        if release.state != ReleaseState.IN_REVIEW or release.approval_id != view.id:
            return
        if view.state == ApprovalState.APPROVED:
            _publish(ctx, release, view.id)
        else:
            release.send_back()
            record(ctx, release, SENT_BACK[ApprovalState(view.state)], detail={"approvalId": str(view.id)})

    def story(self, ctx: Context, view: ApprovalView) -> Timeline:
        return story_of_release(find_release(view.subject_id), view)

    def renewed(self, ctx: Context, old: ApprovalView, new: ApprovalView) -> None:
        """The review goes on, under the fresh request."""
        release = find_release(new.subject_id)
        release.approval_id = new.id
        save(release)


def _outdated(release: Release, view: ApprovalView) -> DomainError | None:
    if release.state != ReleaseState.IN_REVIEW or release.approval_id != view.id:
        return ReviewOver(f"The release is {release.state} and no longer under this review.")
    try:
        check_publishable(release)
    except DomainError as refusal:
        return ReviewOver(refusal.detail)
    return None


def _outdated_rows() -> QuerySet[Release]:
    """The same as a condition of the database, within a question about the requests."""
    rivals = Release.objects.filter(asset_id=OuterRef("asset_id"), semver=OuterRef("semver"))
    rivals = rivals.filter(state__in=sorted(HOLDS_VERSION)).exclude(pk=OuterRef("pk"))
    held = JSONObject(workflows=JSONArray(JSONObject(workflowId=F("workflow_id"))))
    has = Func(
        OuterRef("closure__definition"), held,
        arg_joiner=" @> ", template="(%(expressions)s)", output_field=BooleanField(),
    )  # fmt: skip
    taken = AssetWorkflow.objects.exclude(asset_id=OuterRef("asset_id")).filter(has)
    gone = ClosureDependency.objects.filter(closure_id=OuterRef("closure_id"))
    gone = gone.exclude(release__state__in=sorted(LOADABLE))
    under_review = Q(state=ReleaseState.IN_REVIEW, approval_id=OuterRef("pk"))
    rows: QuerySet[Release] = Release.objects.filter(
        ~under_review | Exists(rivals) | Exists(taken) | Exists(gone)
    )
    return rows


def _publish(ctx: Context, release: Release, approval_id: UUID) -> None:
    check_publishable(release)
    release.publish(at=now())
    told = AssetReleasePublished(
        release_id=release.id,
        tenant_id=ctx.tenant_id,
        asset=release.asset.name,
        version=release.semver,
        release_hash=release.resolved.hash,
        approval_id=approval_id,
    )
    record(ctx, release, "ApprovalGranted", told)
    known = set(AssetWorkflow.objects.filter(asset_id=release.asset_id).values_list("workflow_id", flat=True))
    for workflow_id in _workflow_ids(release):
        if workflow_id not in known:
            save(AssetWorkflow(workflow_id=workflow_id, asset_id=release.asset_id))
    point_alias(ctx, release, LATEST)


subjects.register(SubjectType.PUBLICATION, Publication())
