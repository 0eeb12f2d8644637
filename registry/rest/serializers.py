"""What goes over the wire about releases, and what is accepted."""

from typing import Any

from rest_framework import serializers

from factory.api.serializers import (
    Choice,
    Identifier,
    InUseBody,
    JSONObject,
    Moment,
    QueryMoment,
    StrictSerializer,
    Text,
    Whole,
)
from registry.commands.submitting import DEFAULT_MANIFEST
from registry.models import EvaluationRecord, Release
from registry.states import ReleaseState, Verdict


class NewReleaseBody(StrictSerializer):
    """A candidate: exactly one commit of a repository."""

    asset = Text(max_length=63)
    version = Text(max_length=64)
    repository = Text(max_length=500)
    commit = Text(max_length=64)
    manifestPath = Text(source="manifest_path", required=False, default=DEFAULT_MANIFEST)


class FaultBody(StrictSerializer):
    pointer = Text()
    detail = Text()


class ResolutionBody(StrictSerializer):
    """How far the commit's closure is; `faults` point into the manifest."""

    state = Choice(choices=["pending", "resolved", "failed"])
    attempts = Whole(source="resolution_attempts")
    nextAttemptAt = Moment(source="next_resolution_at", allow_null=True)
    error = Text(source="resolution_error", max_length=1000)
    faults = FaultBody(source="resolution_faults", many=True)

    def to_representation(self, instance: Release) -> dict[str, Any]:
        return {
            "state": resolution_state(instance),
            "attempts": instance.resolution_attempts,
            "nextAttemptAt": instance.next_resolution_at,
            "error": instance.resolution_error,
            "faults": instance.resolution_faults,
        }


def resolution_state(row: Release) -> str:
    if row.closure_id is not None:
        return "resolved"
    return "failed" if row.next_resolution_at is None else "pending"


class EvaluationBody(StrictSerializer):
    """What a suite found about one release hash."""

    evaluationId = Identifier(source="id")
    releaseHash = Text(source="release_hash")
    suite = Text()
    suiteVersion = Text(source="suite_version")
    scores = JSONObject()
    thresholds = JSONObject()
    verdict = Choice(choices=Verdict.choices)
    evidenceHash = Text(source="evidence_hash")
    producer = Text()
    recordedAt = Moment(source="recorded_at")


class ReleaseBody(StrictSerializer):
    """A release."""

    releaseId = Identifier(source="id")
    asset = Text(source="asset.name")
    version = Text(source="semver")
    state = Choice(choices=ReleaseState.choices)
    hash = serializers.SerializerMethodField()
    repository = Text(max_length=500)
    sourceCommit = Text(source="commit")
    manifestPath = Text(source="manifest_path")
    author = Text()
    resolution = ResolutionBody(source="*")
    approvalId = Identifier(source="approval_id", allow_null=True)
    inFlight = Text(source="in_flight")
    reason = Text(source="ending_reason", max_length=1000)
    createdAt = Moment(source="created_at")
    publishedAt = Moment(source="published_at", allow_null=True)
    deprecatedAt = Moment(source="deprecated_at", allow_null=True)
    revokedAt = Moment(source="revoked_at", allow_null=True)
    revision = Whole(source="version")

    def get_hash(self, row: Release) -> str | None:
        return str(row.closure.hash) if row.closure else None


class ReleaseDetailBody(ReleaseBody):
    """A release with what was evaluated, newest first, the aliases that name it, and what rests on it."""

    evaluations = EvaluationBody(many=True)
    aliases = serializers.ListField(child=Text())
    inUse = InUseBody()


def release_detail(
    row: Release, evaluations: list[EvaluationRecord], aliases: list[str], in_use: dict[str, int]
) -> dict[str, Any]:
    """The body of one release."""
    told = EvaluationBody(evaluations, many=True).data
    return {**ReleaseBody(row).data, "evaluations": told, "aliases": aliases, "inUse": in_use}


class ReleaseFilter(StrictSerializer):
    asset = Text(max_length=63, required=False)
    state = Choice(choices=ReleaseState.choices, required=False)


class EntryBody(StrictSerializer):
    """One piece of a release; a release's hash is the root over all of them."""

    kind = Text()
    id = Text()
    path = Text()
    sha256 = Text()
    size = Whole()
    sideEffectClass = Text()


class FileBody(StrictSerializer):
    path = Text()
    sha256 = Text()
    size = Whole()


class ManifestBody(StrictSerializer):
    """What a worker loads: the manifest, its files, and the pieces that the hash is made of."""

    releaseId = Identifier()
    hash = Text()
    asset = Text()
    version = Text()
    sourceCommit = Text()
    manifest = JSONObject()
    files = FileBody(many=True)
    entries = EntryBody(many=True)


class NewEvaluationBody(StrictSerializer):
    """What an evaluator found. The verdict follows from the manifest's thresholds."""

    releaseHash = Text(source="release_hash", max_length=71)
    suite = Text(max_length=63)
    suiteVersion = Text(source="suite_version", max_length=64)
    scores = JSONObject()
    evidenceHash = Text(source="evidence_hash", max_length=71)


class EvaluatedBody(StrictSerializer):
    evaluationId = Identifier()
    verdict = Choice(choices=Verdict.choices)


class ReviewBody(StrictSerializer):
    approvalId = Identifier()
    state = Choice(choices=ReleaseState.choices)


class EmptyBody(StrictSerializer):
    """No members."""


class EndingBody(StrictSerializer):
    """Why a release is taken out of use, and what becomes of runs in flight: `drain`, `block`, `cancel`."""

    inFlight = Text(source="in_flight", max_length=16)
    reason = Text(max_length=1000)


class AliasTargetBody(StrictSerializer):
    """The release to name, and the alias's version that the caller saw (0: there was none)."""

    releaseId = Identifier(source="release_id")
    version = Whole(required=False, default=0)


class AliasFilter(StrictSerializer):
    at = QueryMoment(required=False)


class AliasBody(StrictSerializer):
    """What an alias names."""

    asset = Text()
    alias = Text()
    releaseId = Identifier(source="release_id")
    releaseVersion = Text(source="release_version")
    version = Whole()
    movedBy = Text(source="moved_by")
    movedAt = Moment(source="moved_at")
