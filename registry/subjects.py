"""A release as the subject of an approval: its review opens one, the answer moves it in the same commit."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import BooleanField, Exists, F, Func, OuterRef, Q, QuerySet
from django.db.models.functions import JSONArray, JSONObject

from approvals.selectors import ApprovalView
from approvals.states import ApprovalState, SubjectType
from approvals.subjects import Obstacle, Subject, Timeline, first_that_holds
from factory.kernel.clock import now
from factory.kernel.context import Context
from factory.kernel.errors import DomainError, Gone
from factory.kernel.hashing import digest
from factory.kernel.recording import record, save
from registry.errors import DependencyNotPublished, VersionTaken, WorkflowTaken
from registry.events import AssetReleasePublished
from registry.models import AssetWorkflow, ClosureDependency, EvaluationRecord, Release
from registry.operations import LATEST, lock_release, point_alias
from registry.selectors import entries, find_release, format_needs, revoked_needs
from registry.selectors.timeline import timeline_of_release
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
    """Return what the reviewer signs: the manifest, every file by its hash, and what the evaluation found."""
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
    conditions = _in_the_way()
    number = first_that_holds(Release.objects.filter(pk=release.pk), [holds for holds, _ in conditions])
    if number is not None:
        raise conditions[number][1](release)


def _in_the_way() -> tuple[tuple[Q, Callable[[Release], DomainError]], ...]:
    """Return what may stand in the way of a publication: a condition on the release, and the refusal."""
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
    return (
        (Q(Exists(rivals)), _version_taken),
        (Q(Exists(taken)), _workflow_taken),
        (Q(Exists(gone)), _dependency_gone),
    )


def _version_taken(release: Release) -> DomainError:
    return VersionTaken(f"Another commit already holds {release.asset.name}@{release.semver}.")


def _workflow_taken(release: Release) -> DomainError:
    owned = AssetWorkflow.objects.select_related("asset").filter(workflow_id__in=_workflow_ids(release))
    taken = owned.exclude(asset_id=release.asset_id).order_by("workflow_id")[0]
    return WorkflowTaken(f"The workflow {taken.workflow_id} belongs to the asset {taken.asset.name}.")


def _dependency_gone(release: Release) -> DomainError:
    return DependencyNotPublished(format_needs(revoked_needs([release.resolved.id])[release.resolved.id]))


def _workflow_ids(release: Release) -> list[str]:
    return sorted(item["workflowId"] for item in release.resolved.definition["workflows"])


class Publication(Subject):
    """Publish a release, or send it back, with the decision on it."""

    kind = SubjectType.PUBLICATION

    def lock(self, ctx: Context, subject_id: UUID, run_id: UUID | None) -> None:
        """Lock the asset and the release, and the right to each workflow id that is new."""
        lock_release(ctx, subject_id)

    def obstacles(self) -> tuple[Obstacle, ...]:
        release: QuerySet[Release] = Release.objects.filter(pk=OuterRef("subject_id"))
        in_review = Q(state=ReleaseState.IN_REVIEW, approval_id=OuterRef("pk"))
        return (
            Obstacle(Q(Exists(release.filter(~in_review))), _review_over),
            *(
                Obstacle(Q(Exists(release.filter(holds))), partial(_not_publishable, refusal))
                for holds, refusal in _in_the_way()
            ),
        )

    def decided(self, ctx: Context, view: ApprovalView) -> None:
        release = find_release(view.subject_id)
        if release.state != ReleaseState.IN_REVIEW or release.approval_id != view.id:
            return
        if view.state == ApprovalState.APPROVED:
            _publish(ctx, release, view.id)
        else:
            release.send_back()
            record(ctx, release, SENT_BACK[ApprovalState(view.state)], detail={"approvalId": str(view.id)})

    def timeline(self, ctx: Context, view: ApprovalView) -> Timeline:
        return timeline_of_release(find_release(view.subject_id), view)

    def renewed(self, ctx: Context, old: ApprovalView, new: ApprovalView) -> None:
        """Go on with the review, under the fresh request."""
        release = find_release(new.subject_id)
        release.approval_id = new.id
        save(release)


def _review_over(view: ApprovalView) -> ReviewOver:
    state = find_release(view.subject_id).state
    return ReviewOver(f"The release is {state} and no longer under this review.")


def _not_publishable(refusal: Callable[[Release], DomainError], view: ApprovalView) -> ReviewOver:
    return ReviewOver(refusal(find_release(view.subject_id)).detail)


def _publish(ctx: Context, release: Release, approval_id: UUID) -> None:
    check_publishable(release)
    release.publish(at=now())
    event = AssetReleasePublished(
        release_id=release.id,
        tenant_id=ctx.tenant_id,
        asset=release.asset.name,
        version=release.semver,
        release_hash=release.resolved.hash,
        approval_id=approval_id,
    )
    record(ctx, release, "ApprovalGranted", event)
    known = set(AssetWorkflow.objects.filter(asset_id=release.asset_id).values_list("workflow_id", flat=True))
    for workflow_id in _workflow_ids(release):
        if workflow_id not in known:
            save(AssetWorkflow(workflow_id=workflow_id, asset_id=release.asset_id))
    point_alias(ctx, release, LATEST)
