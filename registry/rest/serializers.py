"""What goes over the wire about releases, and what is accepted."""

from typing import Any

from rest_framework import serializers

from factory.api.serializers import (
    Identifier,
    InUseBody,
    JSONObject,
    QueryTimeField,
    StrictSerializer,
    TextField,
    TimeField,
    Whole,
    WordField,
)
from registry.commands.submitting import DEFAULT_MANIFEST
from registry.models import EvaluationRecord, Release
from registry.states import EvaluationVerdict, ReleaseState


class NewReleaseBody(StrictSerializer):
    """A candidate: exactly one commit of a repository."""

    asset = TextField(max_length=63)
    version = TextField(max_length=64)
    repository = TextField(max_length=500)
    commit = TextField(max_length=64)
    manifestPath = TextField(source="manifest_path", required=False, default=DEFAULT_MANIFEST)


class FaultBody(StrictSerializer):
    pointer = TextField()
    detail = TextField()


class ClosureResolutionBody(StrictSerializer):
    """Say how far the commit's closure is; `faults` point into the manifest."""

    state = WordField(choices=["pending", "resolved", "failed"])
    attempts = Whole(source="resolution_attempts")
    nextAttemptAt = TimeField(source="next_resolution_at", allow_null=True)
    error = TextField(source="resolution_error", max_length=1000)
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
    """Show what a suite found about one release hash."""

    evaluationId = Identifier(source="id")
    releaseHash = TextField(source="release_hash")
    suite = TextField()
    suiteVersion = TextField(source="suite_version")
    scores = JSONObject()
    thresholds = JSONObject()
    verdict = WordField(choices=EvaluationVerdict.choices)
    evidenceHash = TextField(source="evidence_hash")
    producer = TextField()
    recordedAt = TimeField(source="recorded_at")


class ReleaseBody(StrictSerializer):
    """A release."""

    releaseId = Identifier(source="id")
    asset = TextField(source="asset.name")
    version = TextField(source="semver")
    state = WordField(choices=ReleaseState.choices)
    hash = serializers.SerializerMethodField()
    repository = TextField(max_length=500)
    sourceCommit = TextField(source="commit")
    manifestPath = TextField(source="manifest_path")
    author = TextField()
    resolution = ClosureResolutionBody(source="*")
    approvalId = Identifier(source="approval_id", allow_null=True)
    inFlight = TextField(source="in_flight")
    reason = TextField(source="ending_reason", max_length=1000)
    createdAt = TimeField(source="created_at")
    publishedAt = TimeField(source="published_at", allow_null=True)
    deprecatedAt = TimeField(source="deprecated_at", allow_null=True)
    revokedAt = TimeField(source="revoked_at", allow_null=True)
    revision = Whole(source="version")

    def get_hash(self, row: Release) -> str | None:
        return str(row.closure.hash) if row.closure else None


class ReleaseDetailBody(ReleaseBody):
    """A release with what was evaluated, newest first, the aliases that name it, and what rests on it."""

    evaluations = EvaluationBody(many=True)
    aliases = serializers.ListField(child=TextField())
    inUse = InUseBody()


def release_detail(
    row: Release, evaluations: list[EvaluationRecord], aliases: list[str], in_use: dict[str, int]
) -> dict[str, Any]:
    """Return the body of one release."""
    records = EvaluationBody(evaluations, many=True).data
    return {**ReleaseBody(row).data, "evaluations": records, "aliases": aliases, "inUse": in_use}


class ReleaseFilter(StrictSerializer):
    asset = TextField(max_length=63, required=False)
    state = WordField(choices=ReleaseState.choices, required=False)


class EntryBody(StrictSerializer):
    """One piece of a release; a release's hash is the root over all of them."""

    kind = TextField()
    id = TextField()
    path = TextField()
    sha256 = TextField()
    size = Whole()
    sideEffectClass = TextField()


class FileBody(StrictSerializer):
    path = TextField()
    sha256 = TextField()
    size = Whole()


class ManifestBody(StrictSerializer):
    """Hold what a worker loads: the manifest, its files, and the pieces that the hash is made of."""

    releaseId = Identifier()
    hash = TextField()
    asset = TextField()
    version = TextField()
    sourceCommit = TextField()
    manifest = JSONObject()
    files = FileBody(many=True)
    entries = EntryBody(many=True)


class NewEvaluationBody(StrictSerializer):
    """Report what an evaluator found. The verdict follows from the manifest's thresholds."""

    releaseHash = TextField(source="release_hash", max_length=71)
    suite = TextField(max_length=63)
    suiteVersion = TextField(source="suite_version", max_length=64)
    scores = JSONObject()
    evidenceHash = TextField(source="evidence_hash", max_length=71)


class EvaluatedBody(StrictSerializer):
    evaluationId = Identifier()
    verdict = WordField(choices=EvaluationVerdict.choices)


class ReviewBody(StrictSerializer):
    approvalId = Identifier()
    state = WordField(choices=ReleaseState.choices)


class EmptyBody(StrictSerializer):
    """No members."""


class EndingBody(StrictSerializer):
    """Say why a release is taken out of use, and what becomes of its runs: `drain`, `block`, `cancel`."""

    inFlight = TextField(source="in_flight", max_length=16)
    reason = TextField(max_length=1000)


class AliasTargetBody(StrictSerializer):
    """The release to name, and the alias's version that the caller saw (0: there was none)."""

    releaseId = Identifier(source="release_id")
    version = Whole(required=False, default=0)


class AliasFilter(StrictSerializer):
    at = QueryTimeField(required=False)


class AliasBody(StrictSerializer):
    """Say what an alias names."""

    asset = TextField()
    alias = TextField()
    releaseId = Identifier(source="release_id")
    releaseVersion = TextField(source="release_version")
    version = Whole()
    movedBy = TextField(source="moved_by")
    movedAt = TimeField(source="moved_at")
