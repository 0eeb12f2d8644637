"""Proposals, the requests about them, the votes, and the one use of each approval."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from django.db import models
from django.db.models import F, Q
from django_fsm import FSMField, transition

from approvals.models.policy import HASH_LENGTH, PolicyRevision
from approvals.models.waiver import MAX_REASON, Waiver
from approvals.states import (
    APPROVAL,
    GATED,
    WAIVABLE,
    ActionClass,
    ApprovalState,
    Decision,
    OnExpiry,
    SubjectType,
)
from factory.kernel.lifecycle import Lifecycle
from factory.kernel.models.base import Journaled, TenantForeignKey, TenantModel, in_check, uuid_key
from projects.states import MACHINE

MAX_PROPOSAL_BYTES = 1024 * 1024
MAX_SUMMARY = 500
WAIVER_PREFIX = "waiver:"
"""Who decided, where nobody was asked: the waiver, by its id. No subject can begin like this."""


class Proposal(TenantModel):
    """The exact thing that is decided about, as canonical bytes; append-only.

    The database itself recomputes the hash in a CHECK, so that no row can lie about its content.
    """

    id = uuid_key()
    content = models.BinaryField()
    hash = models.CharField(max_length=HASH_LENGTH)
    size = models.PositiveIntegerField()
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(size__gte=2, size__lte=MAX_PROPOSAL_BYTES), name="proposal_size_bounded"
            ),
        ]

    def __str__(self) -> str:
        return self.hash


class ApprovalRequest(Journaled):
    """One question to people: may exactly this happen? All but its answer is fixed when it is asked."""

    lifecycle: ClassVar[Lifecycle] = APPROVAL

    project = TenantForeignKey("projects.Project", null=True, related_name="+")
    subject_type = models.CharField(max_length=16, choices=SubjectType.choices)
    subject_id = models.UUIDField()
    run_id = models.UUIDField(null=True)
    step_id = models.UUIDField(null=True)
    attempt_id = models.UUIDField(null=True)
    release_id = models.UUIDField(null=True)
    environment = TenantForeignKey("projects.Environment", null=True, related_name="+")
    action_class = models.CharField(max_length=16)
    summary = models.CharField(max_length=MAX_SUMMARY)
    proposal = TenantForeignKey(Proposal, related_name="+")
    proposal_hash = models.CharField(max_length=HASH_LENGTH)

    policy = TenantForeignKey(PolicyRevision, related_name="+")
    policy_revision = models.CharField(max_length=16)
    approver_rule = models.CharField(max_length=1000)
    approver_roles = models.JSONField()
    quorum = models.PositiveSmallIntegerField(default=1)
    on_expiry = models.CharField(max_length=16, choices=OnExpiry.choices, default=OnExpiry.FAIL)
    valid_for = models.DurationField()
    nobody_eligible = models.BooleanField(default=False)

    requested_by = models.CharField(max_length=255)
    requester_person = models.CharField(max_length=255)
    author_person = models.CharField(max_length=255, blank=True)
    requested_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    renews = models.UUIDField(null=True)
    waiver = TenantForeignKey(Waiver, null=True, related_name="requests")

    state = FSMField(default="", protected=True, editable=False)
    version = models.BigIntegerField(default=0)
    votes = models.PositiveSmallIntegerField(default=0)
    decision = models.CharField(max_length=16, blank=True)
    decided_by = models.CharField(max_length=255, blank=True)
    decided_person = models.CharField(max_length=255, blank=True)
    decided_for = models.CharField(max_length=255, blank=True)
    delegation_id = models.UUIDField(null=True)
    break_glass = models.BooleanField(default=False)
    passed_over = models.JSONField(default=list)
    decided_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=MAX_REASON, blank=True)
    closed_at = models.DateTimeField(null=True)
    valid_until = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=in_check("state", ApprovalState.values), name="approval_state_known"
            ),
            models.CheckConstraint(
                condition=in_check("action_class", list(GATED))
                | Q(subject_type=SubjectType.RUN, attempt_id__isnull=True),
                name="approval_class_gated",
            ),
            models.CheckConstraint(
                condition=(
                    Q(subject_type=SubjectType.RUN, run_id__isnull=False, step_id__isnull=False)
                    & Q(project_id__isnull=False)
                    & ~Q(action_class="spend")
                )
                | Q(
                    subject_type=SubjectType.SPEND,
                    run_id__isnull=False,
                    subject_id=F("run_id"),
                    step_id__isnull=True,
                    attempt_id__isnull=True,
                    project_id__isnull=False,
                    action_class="spend",
                )
                | Q(
                    subject_type=SubjectType.PUBLICATION,
                    run_id__isnull=True,
                    step_id__isnull=True,
                    attempt_id__isnull=True,
                    action_class="publication",
                )
                | Q(
                    subject_type=SubjectType.WAIVER,
                    run_id__isnull=True,
                    step_id__isnull=True,
                    attempt_id__isnull=True,
                    project_id__isnull=False,
                    action_class="publication",
                ),
                name="approval_subject_whole",
            ),
            models.CheckConstraint(
                condition=Q(waiver__isnull=True)
                | Q(
                    state=ApprovalState.APPROVED,
                    action_class=WAIVABLE,
                    attempt_id__isnull=False,
                    environment_id__isnull=False,
                    release_id__isnull=False,
                    break_glass=False,
                    delegation_id__isnull=True,
                ),
                name="approval_waived_only_where_it_may_be",
            ),
            models.CheckConstraint(
                condition=Q(state=ApprovalState.PENDING, closed_at__isnull=True)
                | (~Q(state=ApprovalState.PENDING) & Q(closed_at__isnull=False)),
                name="approval_closed_at_its_end",
            ),
            models.CheckConstraint(
                condition=(
                    Q(state=ApprovalState.APPROVED, decision=Decision.APPROVE)
                    | Q(state=ApprovalState.REJECTED, decision=Decision.REJECT)
                    | (Q(state=ApprovalState.STALE, decision=Decision.REQUEST_CHANGES) & ~Q(reason=""))
                    | (
                        ~Q(state__in=[ApprovalState.APPROVED, ApprovalState.REJECTED])
                        & Q(decision="", decided_by="", decided_person="", decided_at__isnull=True)
                        & Q(decided_for="", delegation_id__isnull=True, break_glass=False)
                    )
                ),
                name="approval_decision_fits_state",
            ),
            models.CheckConstraint(
                condition=Q(decision="")
                | (~Q(decided_by="") & ~Q(decided_person="") & Q(decided_at__isnull=False)),
                name="approval_decided_by_somebody",
            ),
            models.CheckConstraint(
                condition=Q(decided_person="")
                | (
                    ~Q(decided_person=F("requester_person"))
                    & ~Q(decided_person=F("author_person"))
                    & (
                        Q(decided_for="")
                        | (~Q(decided_for=F("requester_person")) & ~Q(decided_for=F("author_person")))
                    )
                ),
                name="approval_duties_separate",
            ),
            models.CheckConstraint(
                condition=Q(decided_for="", delegation_id__isnull=True)
                | (Q(delegation_id__isnull=False, break_glass=False) & ~Q(decided_for="")),
                name="approval_delegated_by_somebody",
            ),
            models.CheckConstraint(
                condition=Q(break_glass=False) | ~Q(reason=""), name="approval_break_glass_has_a_reason"
            ),
            models.CheckConstraint(
                condition=Q(quorum__gte=1, quorum__lte=10), name="approval_quorum_bounded"
            ),
            models.CheckConstraint(
                condition=in_check("on_expiry", OnExpiry.values), name="approval_on_expiry_known"
            ),
            models.CheckConstraint(
                condition=Q(decided_at__isnull=True)
                | Q(decided_at__gte=F("requested_at"), decided_at__lt=F("expires_at")),
                name="approval_decided_in_time",
            ),
            models.CheckConstraint(
                condition=Q(valid_until__isnull=True) | Q(state=ApprovalState.APPROVED),
                name="approval_validity_of_approved",
            ),
            models.UniqueConstraint(fields=["proposal"], name="approval_has_its_own_proposal"),
            models.UniqueConstraint(
                fields=["step_id"],
                condition=Q(state=ApprovalState.PENDING, subject_type=SubjectType.RUN),
                name="approval_one_pending_per_step",
            ),
            models.UniqueConstraint(
                fields=["subject_id"],
                condition=Q(
                    state=ApprovalState.PENDING,
                    subject_type__in=[SubjectType.PUBLICATION, SubjectType.SPEND, SubjectType.WAIVER],
                ),
                name="approval_one_pending_per_subject",
            ),
            models.UniqueConstraint(
                fields=["renews"], condition=Q(renews__isnull=False), name="approval_renewed_once"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant_id", "state", "expires_at"], name="approval_inbox"),
            models.Index(fields=["tenant_id", "requested_at", "id"], name="approval_by_time"),
            models.Index(fields=["tenant_id", "project", "requested_at", "id"], name="approval_by_project"),
            models.Index(fields=["tenant_id", "state", "requested_at", "id"], name="approval_by_state"),
            models.Index(
                fields=["tenant_id", "project", "state", "requested_at", "id"],
                name="approval_by_project_state",
            ),
            models.Index(
                fields=["tenant_id", "action_class", "requested_at", "id"],
                condition=~Q(action_class=ActionClass.SHARED_WRITE),  # most of them ask for one
                name="approval_by_class",
            ),
            models.Index(fields=["tenant_id", "requested_by", "requested_at"], name="approval_by_requester"),
            models.Index(
                fields=["tenant_id", "requester_person", "requested_at"],
                condition=~Q(requester_person=F("requested_by")),  # a service asked for them
                name="approval_by_person",
            ),
            models.Index(fields=["tenant_id", "proposal_hash"], name="approval_by_proposal"),
            models.Index(fields=["run_id", "step_id"], name="approval_by_run"),
            models.Index(fields=["subject_id", "requested_at"], name="approval_by_subject"),
            models.Index(
                fields=["waiver", "requested_at"],
                condition=Q(waiver__isnull=False),
                name="approval_by_waiver",
            ),
            models.Index(
                fields=["tenant_id", "decided_at"],
                condition=Q(break_glass=True),
                name="approval_break_glass",
            ),
            models.Index(
                fields=["expires_at", "id"], condition=Q(state=ApprovalState.PENDING), name="approval_due"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action_class} {self.id}"

    @property
    def stream(self) -> UUID:
        """Return the chain in which it stands: its run's, or its release's."""
        return self.run_id or self.subject_id

    @property
    def sent_back(self) -> bool:
        """Stale because a reviewer asked for changes, not because another proposal came."""
        return self.decision == Decision.REQUEST_CHANGES

    @property
    def consumed_by_its_decision(self) -> bool:
        """Return whether the decision itself is the use, because no attempt asked: a human step, money."""
        return self.attempt_id is None

    @transition(field="state", source="", target=ApprovalState.PENDING)
    def open(self, *, at: datetime, expires_at: datetime) -> None:
        self.requested_at = at
        self.expires_at = expires_at

    @transition(field="state", source="", target=ApprovalState.APPROVED)
    def open_under(self, waiver: Waiver, *, at: datetime, expires_at: datetime) -> None:
        """Decided before it was asked: by whoever decided the waiver, for exactly this proposal."""
        self.requested_at, self.expires_at = at, expires_at
        self.waiver = waiver
        reason = f"Approved in advance by {waiver.decided_by}: {waiver.reason}"[:MAX_REASON]
        by = f"{WAIVER_PREFIX}{waiver.id}"
        self._decide(Decision.APPROVE, DecisionAnswer(by=by, person=waiver.decided_person, reason=reason), at)

    @transition(field="state", source=ApprovalState.PENDING, target=ApprovalState.PENDING)
    def count_vote(self) -> None:
        """Count one more approval, while more are needed: the vote's own row says whose."""
        self.votes += 1

    @transition(field="state", source=ApprovalState.PENDING, target=ApprovalState.APPROVED)
    def approve(self, answer: "DecisionAnswer", *, at: datetime) -> None:
        self._decide(Decision.APPROVE, answer, at)

    @transition(field="state", source=ApprovalState.PENDING, target=ApprovalState.REJECTED)
    def reject(self, answer: "DecisionAnswer", *, at: datetime) -> None:
        self._decide(Decision.REJECT, answer, at)

    @transition(field="state", source=ApprovalState.PENDING, target=ApprovalState.STALE)
    def request_changes(self, answer: "DecisionAnswer", *, at: datetime) -> None:
        self._decide(Decision.REQUEST_CHANGES, answer, at)

    @transition(field="state", source=ApprovalState.PENDING, target=ApprovalState.STALE)
    def supersede(self, *, at: datetime) -> None:
        self.closed_at = at

    @transition(field="state", source=ApprovalState.PENDING, target=ApprovalState.EXPIRED)
    def expire(self, *, at: datetime) -> None:
        self.closed_at = at

    @transition(field="state", source=ApprovalState.PENDING, target=ApprovalState.CANCELLED)
    def cancel(self, *, at: datetime) -> None:
        self.closed_at = at

    @transition(field="state", source=ApprovalState.APPROVED, target=ApprovalState.APPROVED)
    def start_validity(self, *, at: datetime) -> None:
        self.valid_until = at + self.valid_for

    @transition(field="state", source=ApprovalState.APPROVED, target=ApprovalState.APPROVED)
    def resume_validity(self, *, until: datetime) -> None:
        """Put its end off by the time for which nobody could use it."""
        self.valid_until = until

    @transition(field="state", source=ApprovalState.APPROVED, target=ApprovalState.APPROVED)
    def authorize(self, *, at: datetime) -> None:
        """Used: the authorization row itself says when and by whom."""

    def _decide(self, decision: Decision, answer: "DecisionAnswer", at: datetime) -> None:
        self.decision = decision.value
        self.decided_by, self.decided_person = answer.by, answer.person
        self.decided_for, self.delegation_id = answer.acting_for, answer.delegation_id
        self.break_glass, self.passed_over = answer.break_glass, list(answer.passed_over)
        self.reason = answer.reason
        self.decided_at = self.closed_at = at


@dataclass(frozen=True, slots=True)
class DecisionAnswer:
    """Name who answers, in whose place, in which words."""

    by: str
    person: str
    reason: str
    acting_for: str = ""
    delegation_id: UUID | None = None
    break_glass: bool = False
    passed_over: tuple[str, ...] = ()


class Vote(TenantModel):
    """One person's yes to a request that needs several; append-only. All are judged at the last one."""

    id = uuid_key()
    approval = TenantForeignKey(ApprovalRequest, related_name="votes_cast")
    voter = models.CharField(max_length=255)
    person = models.CharField(max_length=255)
    acting_for = models.CharField(max_length=255, blank=True)
    delegation_id = models.UUIDField(null=True)
    version = models.BigIntegerField()
    proposal_hash = models.CharField(max_length=HASH_LENGTH)
    reason = models.CharField(max_length=MAX_REASON, blank=True)
    voted_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["approval", "voter"], name="vote_once"),
            models.CheckConstraint(
                condition=~Q(voter__regex=MACHINE) & ~Q(acting_for__regex=MACHINE), name="vote_of_people"
            ),
            models.CheckConstraint(
                condition=Q(acting_for="", delegation_id__isnull=True)
                | (~Q(acting_for="") & Q(delegation_id__isnull=False)),
                name="vote_delegated_by_somebody",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.voter} on {self.approval_id}"


class Authorization(TenantModel):
    """The approval's one use: who took it, under which lease and token; append-only.

    From this moment an effect may have happened.
    """

    id = uuid_key()
    approval = TenantForeignKey(ApprovalRequest, related_name="authorizations")
    run_id = models.UUIDField()
    step_id = models.UUIDField()
    attempt_id = models.UUIDField()
    lease_id = models.UUIDField()
    fencing_token = models.BigIntegerField()
    proposal_hash = models.CharField(max_length=HASH_LENGTH)
    waiver_id = models.UUIDField(null=True)
    authorized_by = models.CharField(max_length=255)
    authorized_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["approval"], name="authorization_once")]
        indexes: ClassVar = [models.Index(fields=["attempt_id"], name="authorization_by_attempt")]

    def __str__(self) -> str:
        return f"{self.approval_id} under {self.fencing_token}"
