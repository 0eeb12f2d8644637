"""The registry's tables. What a commit says about a release is append-only; only its standing moves."""

from datetime import datetime
from uuid import UUID

from django.db import models
from django.db.models import Q
from django_fsm import FSMField, transition

from factory.kernel.models.base import Journaled, TenantForeignKey, TenantModel, in_check, uuid_key
from registry.errors import ClosureNotResolved
from registry.states import (
    ALIAS,
    HOLDS_VERSION,
    RELEASE,
    AliasState,
    EvaluationVerdict,
    InFlight,
    ReleaseState,
)

HASH = r"^sha256:[0-9a-f]{64}$"


class Asset(TenantModel):
    """The name that all versions of a thing share."""

    id = uuid_key()
    name = models.CharField(max_length=63)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant_id", "name"], name="one_asset_per_name")]

    def __str__(self) -> str:
        return self.name


class Release(Journaled):
    """A candidate from one commit, and what became of it."""

    lifecycle = RELEASE

    asset = TenantForeignKey("registry.Asset", related_name="releases")
    semver = models.CharField(max_length=64)
    repository = models.CharField(max_length=500)
    commit = models.CharField(max_length=64)
    manifest_path = models.CharField(max_length=255)
    author = models.CharField(max_length=255)
    author_person = models.CharField(max_length=255)
    created_at = models.DateTimeField()
    state = FSMField(default=ReleaseState.DRAFT, choices=ReleaseState.choices, protected=True)
    version = models.BigIntegerField(default=0)
    closure = TenantForeignKey("registry.Closure", null=True, related_name="+")
    resolution_attempts = models.PositiveSmallIntegerField(default=0)
    next_resolution_at = models.DateTimeField(null=True)
    resolution_error = models.CharField(max_length=1000, blank=True, default="")
    resolution_faults = models.JSONField(default=list)
    evaluation = TenantForeignKey("registry.EvaluationRecord", null=True, related_name="+")
    approval_id = models.UUIDField(null=True)
    published_at = models.DateTimeField(null=True)
    deprecated_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    in_flight = models.CharField(max_length=16, blank=True, default="")
    ending_reason = models.CharField(max_length=1000, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "asset", "semver", "commit", "manifest_path"],
                name="one_candidate_per_commit",
            ),
            models.UniqueConstraint(
                fields=["tenant_id", "asset", "semver"],
                condition=Q(state__in=sorted(HOLDS_VERSION)),
                name="one_release_per_version",
            ),
            models.UniqueConstraint(fields=["tenant_id", "closure"], name="one_release_per_closure"),
            models.CheckConstraint(
                condition=in_check("state", ReleaseState.values), name="release_state_known"
            ),
            models.CheckConstraint(
                condition=Q(state=ReleaseState.DRAFT) | Q(closure__isnull=False, evaluation__isnull=False),
                name="release_beyond_draft_is_closed_and_evaluated",
            ),
            models.CheckConstraint(
                condition=Q(state=ReleaseState.DRAFT, approval_id__isnull=True)
                | (~Q(state=ReleaseState.DRAFT) & Q(approval_id__isnull=False)),
                name="release_has_an_approval_beyond_draft",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=[ReleaseState.PUBLISHED, ReleaseState.DEPRECATED])
                | Q(published_at__isnull=False),
                name="release_published_at",
            ),
            models.CheckConstraint(
                condition=~Q(state=ReleaseState.DEPRECATED) | Q(deprecated_at__isnull=False),
                name="release_deprecated_at",
            ),
            models.CheckConstraint(
                condition=Q(state=ReleaseState.REVOKED, revoked_at__isnull=False)
                | (~Q(state=ReleaseState.REVOKED) & Q(revoked_at__isnull=True)),
                name="release_revoked_at",
            ),
            models.CheckConstraint(
                condition=Q(
                    state__in=[ReleaseState.DEPRECATED, ReleaseState.REVOKED], in_flight__in=InFlight.values
                )
                | (~Q(state__in=[ReleaseState.DEPRECATED, ReleaseState.REVOKED]) & Q(in_flight="")),
                name="release_in_flight",
            ),
            models.CheckConstraint(
                condition=Q(next_resolution_at__isnull=True)
                | Q(state=ReleaseState.DRAFT, closure__isnull=True),
                name="release_resolution_is_due_only_in_draft",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant_id", "-created_at", "-id"], name="release_newest"),
            models.Index(fields=["asset", "-created_at", "-id"], name="release_newest_of_asset"),
            models.Index(
                fields=["next_resolution_at"],
                condition=Q(next_resolution_at__isnull=False),
                name="release_resolution_due",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.asset.name}@{self.semver}"

    @property
    def resolved(self) -> "Closure":
        """Return its closure, which all but a young Draft has; raises `ClosureNotResolved`."""
        if self.closure is None:
            raise ClosureNotResolved("The release's closure is not resolved yet.")
        return self.closure

    @transition(field=state, source=ReleaseState.DRAFT, target=ReleaseState.IN_REVIEW)
    def open_review(self, *, approval_id: UUID, evaluation: "EvaluationRecord") -> None:
        self.approval_id = approval_id
        self.evaluation = evaluation

    @transition(field=state, source=ReleaseState.IN_REVIEW, target=ReleaseState.PUBLISHED)
    def publish(self, *, at: datetime) -> None:
        self.published_at = at

    @transition(field=state, source=ReleaseState.IN_REVIEW, target=ReleaseState.DRAFT)
    def send_back(self) -> None:
        self.approval_id = None
        self.evaluation = None

    @transition(field=state, source=ReleaseState.PUBLISHED, target=ReleaseState.DEPRECATED)
    def deprecate(self, *, at: datetime, in_flight: str, reason: str) -> None:
        self.deprecated_at = at
        self.in_flight = in_flight
        self.ending_reason = reason

    @transition(
        field=state,
        source=[ReleaseState.IN_REVIEW, ReleaseState.PUBLISHED, ReleaseState.DEPRECATED],
        target=ReleaseState.REVOKED,
    )
    def revoke(self, *, at: datetime, in_flight: str, reason: str) -> None:
        self.revoked_at = at
        self.in_flight = in_flight
        self.ending_reason = reason


class Closure(TenantModel):
    """Keep what a candidate's commit says, resolved once and never again. Append-only."""

    id = uuid_key()
    hash = models.CharField(max_length=71)
    definition = models.JSONField()
    resolved_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(hash__regex=HASH), name="closure_hash_form"),
        ]

    def __str__(self) -> str:
        return self.hash


class ClosureEntry(TenantModel):
    """One piece of a release with its hash. Append-only."""

    id = uuid_key()
    closure = TenantForeignKey("registry.Closure", related_name="entries")
    kind = models.CharField(max_length=16)
    item_id = models.CharField(max_length=130)
    path = models.CharField(max_length=255, blank=True)
    sha256 = models.CharField(max_length=71)
    size = models.BigIntegerField()
    side_effect_class = models.CharField(max_length=16, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "closure", "kind", "item_id", "path"], name="one_entry_per_piece"
            ),
            models.CheckConstraint(condition=Q(sha256__regex=HASH), name="entry_hash_form"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.item_id} {self.path}"


class ClosureDependency(TenantModel):
    """A release that a closure needs, directly or through others. Append-only."""

    id = uuid_key()
    closure = TenantForeignKey("registry.Closure", related_name="dependencies")
    release = TenantForeignKey("registry.Release", related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "closure", "release"], name="one_row_per_dependency")
        ]
        indexes = [models.Index(fields=["release", "closure"], name="closures_needing")]

    def __str__(self) -> str:
        return str(self.release_id)


class ReleaseBlob(TenantModel):
    """The content of a file, kept once for each tenant under its hash. Append-only."""

    id = uuid_key()
    sha256 = models.CharField(max_length=71)
    content = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant_id", "sha256"], name="one_blob_per_hash")]

    def __str__(self) -> str:
        return self.sha256


class EvaluationRecord(TenantModel):
    """Keep what a suite said about exactly one release hash. Append-only."""

    id = uuid_key()
    closure = TenantForeignKey("registry.Closure", related_name="evaluations")
    release_hash = models.CharField(max_length=71)
    suite = models.CharField(max_length=63)
    suite_version = models.CharField(max_length=64)
    scores = models.JSONField()
    thresholds = models.JSONField()
    verdict = models.CharField(max_length=8, choices=EvaluationVerdict.choices)
    evidence_hash = models.CharField(max_length=71)
    producer = models.CharField(max_length=255)
    recorded_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=in_check("verdict", EvaluationVerdict.values), name="verdict_known"
            ),
            models.CheckConstraint(
                condition=Q(release_hash__regex=HASH, evidence_hash__regex=HASH), name="evaluation_hash_form"
            ),
        ]
        indexes = [models.Index(fields=["tenant_id", "closure", "-id"], name="evaluations_newest")]

    def __str__(self) -> str:
        return f"{self.suite}@{self.suite_version}: {self.verdict}"


class AssetWorkflow(TenantModel):
    """Bind a workflow to its asset: an alias and a workflow together name one release. Append-only."""

    id = uuid_key()
    workflow_id = models.CharField(max_length=63)
    asset = TenantForeignKey("registry.Asset", related_name="workflows")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "workflow_id"], name="a_workflow_has_one_asset")
        ]

    def __str__(self) -> str:
        return self.workflow_id


class Alias(Journaled):
    """A name that moves between Published releases of one asset."""

    lifecycle = ALIAS

    asset = TenantForeignKey("registry.Asset", related_name="aliases")
    name = models.CharField(max_length=63)
    state = FSMField(default=AliasState.SET, choices=AliasState.choices, protected=True)
    release = TenantForeignKey("registry.Release", related_name="aliases")
    version = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "asset", "name"], name="one_alias_per_name"),
            models.CheckConstraint(condition=in_check("state", AliasState.values), name="alias_state_known"),
        ]
        indexes = [models.Index(fields=["release"], name="aliases_of_release")]

    def __str__(self) -> str:
        return self.name

    @transition(field=state, source=AliasState.SET, target=AliasState.SET)
    def move(self, *, release: Release) -> None:
        self.release = release


class AliasMove(TenantModel):
    """Keep what an alias named from a moment on. Append-only."""

    id = uuid_key()
    alias = TenantForeignKey("registry.Alias", related_name="moves")
    version = models.BigIntegerField()
    release = TenantForeignKey("registry.Release", related_name="+")
    moved_by = models.CharField(max_length=255)
    moved_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "alias", "version"], name="one_move_per_version")
        ]
        indexes = [models.Index(fields=["tenant_id", "alias", "-moved_at"], name="moves_newest")]

    def __str__(self) -> str:
        return f"{self.alias_id} v{self.version}"
