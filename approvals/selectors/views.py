"""Frozen views: what approvals hand to other apps and to interfaces, never rows."""

from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar
from uuid import UUID

from django.db.models import Model

from approvals.models import ApprovalRequest, Authorization, PolicyRevision
from approvals.states import ApprovalState, OnExpiry, SubjectType
from factory.kernel import clock
from projects.selectors import paused

Use = Literal["", "not-yet-used", "used", "ended-unused"]
V = TypeVar("V")


def of_row(view: type[V], row: Model, **other: Any) -> V:
    """Return the view of a row: its columns of the view's names, and `other` in the place of some."""
    names = (field.name for field in fields(view) if field.name not in other)  # type: ignore[arg-type]
    return view(**{name: getattr(row, name) for name in names}, **other)


@dataclass(frozen=True, slots=True)
class PolicyView:
    """A policy revision: `policy_id` and `revision` are what runs pin."""

    id: UUID
    policy_id: str
    revision: str
    number: int
    document: dict[str, Any]
    document_hash: str
    note: str
    warnings: tuple[str, ...]
    published_by: str
    published_at: datetime


def policy_view(row: PolicyRevision) -> PolicyView:
    return of_row(PolicyView, row, warnings=tuple(row.warnings))


@dataclass(frozen=True, slots=True)
class AuthorizationView:
    """The one use of an approval."""

    id: UUID
    approval_id: UUID
    run_id: UUID
    step_id: UUID
    attempt_id: UUID
    lease_id: UUID
    fencing_token: int
    proposal_hash: str
    waiver_id: UUID | None
    authorized_by: str
    authorized_at: datetime


def authorization_view(row: Authorization) -> AuthorizationView:
    return of_row(AuthorizationView, row)


@dataclass(frozen=True, slots=True)
class ApprovalView:
    """A request and its answer, if it has one. `authorization` is its use, if it was used."""

    id: UUID
    tenant_id: str
    project_id: UUID | None
    project: str
    subject_type: str
    subject_id: UUID
    run_id: UUID | None
    step_id: UUID | None
    attempt_id: UUID | None
    release_id: UUID | None
    environment_id: UUID | None
    environment: str
    action_class: str
    summary: str
    proposal_hash: str
    policy_id: UUID
    policy_revision: str
    approver_rule: str
    approver_roles: tuple[str, ...]
    quorum: int
    on_expiry: str
    valid_for: timedelta
    nobody_eligible: bool
    requested_by: str
    requester_person: str
    author_person: str
    requested_at: datetime
    expires_at: datetime
    renews: UUID | None
    waiver_id: UUID | None
    state: str
    version: int
    votes: int
    decision: str
    decided_by: str
    decided_person: str
    decided_for: str
    delegation_id: UUID | None
    break_glass: bool
    passed_over: tuple[str, ...]
    decided_at: datetime | None
    reason: str
    closed_at: datetime | None
    valid_until: datetime | None
    authorization: AuthorizationView | None

    @property
    def is_pending(self) -> bool:
        return self.state == ApprovalState.PENDING

    @property
    def names_nobody(self) -> bool:
        """The rules that it is judged by, which are pinned, and its node have no role in common: no member
        decides on it, whoever joins, and no newer policy changes that."""
        return not self.approver_roles

    @property
    def may_be_renewed(self) -> bool:
        """Return whether the same is asked once more when nobody answers in time, if it still stands then."""
        return self.on_expiry == OnExpiry.RE_REQUEST and self.renews is None

    @property
    def sent_back(self) -> bool:
        """Return whether a reviewer asked for changes: the words are in `reason`."""
        return self.decision == "request_changes"

    @property
    def consumed_by_its_decision(self) -> bool:
        """Return whether the decision itself is the use, because no attempt asked: a human step, money."""
        return self.attempt_id is None

    @property
    def subject(self) -> str | None:
        """Return what it is about, where that is no run."""
        return None if self.subject_type == SubjectType.RUN else f"{self.subject_type}:{self.subject_id}"

    def use(self, at: datetime) -> Use:
        """Approved is not done: whether the approval is used, can still be, or ended unused."""
        if self.state != ApprovalState.APPROVED:
            return ""
        if self.authorization is not None or self.consumed_by_its_decision:
            return "used"
        return "ended-unused" if self.valid_until is not None and at >= self.valid_until else "not-yet-used"


def valid_until(row: ApprovalRequest, at: datetime) -> datetime | None:
    """Return the end of an approval's validity as of `at`: it stands still while the project is suspended.

    An approval in advance ends with its waiver at the latest, which waits for nobody.
    """
    if row.valid_until is None:
        return row.waiver.end if row.waiver else None
    since = row.valid_until - row.valid_for
    return _with_waiver(row, row.valid_until + paused(row.project_id, since, row.valid_until, at))


def _with_waiver(row: ApprovalRequest, own: datetime) -> datetime:
    return min(own, row.waiver.end) if row.waiver else own


def _shown_end(row: ApprovalRequest) -> datetime | None:
    """Return `valid_until` now, from the query that read the row where that has asked (`requests`)."""
    put_off: timedelta | None = getattr(row, "paused", None)
    if row.valid_until is None:
        return row.waiver.end if row.waiver else None
    if put_off is None:
        return valid_until(row, clock.now())
    return _with_waiver(row, row.valid_until + put_off)


def approval_view(row: ApprovalRequest) -> ApprovalView:
    """Return the view of a row; its authorization, project and environment are read if not yet there."""
    may_be_used = row.state == ApprovalState.APPROVED
    used = next(iter(row.authorizations.all()), None) if may_be_used else None
    return of_row(
        ApprovalView,
        row,
        project=row.project.slug if row.project else "",
        environment=row.environment.slug if row.environment else "",
        approver_roles=tuple(row.approver_roles),
        passed_over=tuple(row.passed_over),
        valid_until=_shown_end(row),
        authorization=authorization_view(used) if used else None,
    )
