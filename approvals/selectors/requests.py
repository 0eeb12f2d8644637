"""Reads of requests, their proposals and their uses."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Case, DateTimeField, F, Func, QuerySet, When

from approvals.errors import ApprovalNotFound, ProposalCorrupted
from approvals.models import ApprovalRequest, Authorization, Proposal, Vote
from approvals.selectors.views import ApprovalView, AuthorizationView, approval_view, authorization_view
from approvals.states import ApprovalState
from factory.kernel import clock
from factory.kernel.hashing import digest_bytes
from factory.kernel.models import JournalEntry
from projects.selectors import Paused


@dataclass(frozen=True, slots=True)
class ProposalView:
    """Hold what is decided about, exactly as it was asked."""

    hash: str
    size: int
    content: Any


def requests() -> QuerySet[ApprovalRequest]:
    """Return all requests of the tenant in scope, with what a view of them needs."""
    at = Func(function="clock_timestamp", output_field=DateTimeField())
    paused = Paused(F("project_id"), F("valid_until") - F("valid_for"), F("valid_until"), at)
    beside = ("project", "environment", "waiver")
    rows: QuerySet[ApprovalRequest] = ApprovalRequest.objects.select_related(*beside)
    rows = rows.annotate(paused=Case(When(valid_until__isnull=False, then=paused), default=timedelta(0)))
    return rows.prefetch_related("authorizations")


def approval(approval_id: UUID) -> ApprovalView:
    """Return a request. Raises `ApprovalNotFound`."""
    row = requests().filter(pk=approval_id).first()
    if row is None:
        raise ApprovalNotFound(f"There is no approval {approval_id} here.")
    return approval_view(row)


def runs_of_approvals(ids: Iterable[UUID]) -> dict[UUID, UUID]:
    """By request, the run that it is about; requests about no run are left out."""
    rows = ApprovalRequest.objects.filter(pk__in=list(ids), run_id__isnull=False)
    return dict(rows.values_list("pk", "run_id"))


def pending_of_run(run_id: UUID) -> list[ApprovalView]:
    """Return the requests that a run waits for, oldest first."""
    rows = requests().filter(run_id=run_id, state=ApprovalState.PENDING)
    return [approval_view(row) for row in rows.order_by("requested_at", "id")]


def approvals_of_run(run_id: UUID) -> list[ApprovalView]:
    """Return all that a run asked, oldest first."""
    return [approval_view(row) for row in requests().filter(run_id=run_id).order_by("requested_at", "id")]


def approvals_of_step(step_id: UUID) -> list[ApprovalView]:
    """Return all that a step asked, oldest first: its rounds."""
    return [approval_view(row) for row in requests().filter(step_id=step_id).order_by("requested_at", "id")]


def approvals_of_subject(subject_id: UUID) -> list[ApprovalView]:
    """Return all that was asked about a subject, such as a release, oldest first."""
    rows = requests().filter(subject_id=subject_id).order_by("requested_at", "id")
    return [approval_view(row) for row in rows]


def cancelled_by(view: ApprovalView) -> str:
    """Return who brought about that it was cancelled, as the journal has it; empty of any other."""
    if view.state != ApprovalState.CANCELLED:
        return ""
    rows = JournalEntry.objects.filter(entity_id=view.id, to_state=view.state).order_by("-sequence")
    return rows.values_list("actor", flat=True).first() or ""


def previous_of(view: ApprovalView) -> ApprovalView | None:
    """Return the request that this one followed, for showing what changed since."""
    about = {"step_id": view.step_id} if view.step_id else {"subject_id": view.subject_id}
    row = requests().filter(**about, id__lt=view.id).order_by("-requested_at", "-id").first()
    return None if row is None else approval_view(row)


def proposal(approval_id: UUID) -> ProposalView:
    """Return what a request is about, with its hash recomputed.

    Raises `ProposalCorrupted` when the stored bytes are not what was asked about.
    """
    row = ApprovalRequest.objects.select_related("proposal").filter(pk=approval_id).first()
    if row is None:
        raise ApprovalNotFound(f"There is no approval {approval_id} here.")
    content = genuine(row.proposal, row.proposal_hash)
    return ProposalView(hash=row.proposal_hash, size=len(content), content=json.loads(content))


def genuine(stored: Proposal, expected: str) -> bytes:
    """Return the stored bytes, if they still have the hash that was asked about."""
    content = bytes(stored.content)
    if not digest_bytes(content) == stored.hash == expected:
        raise ProposalCorrupted(
            "The stored proposal is not the one that was asked about. Nothing may be decided or done with it."
        )
    return content


def votes_of(approval_id: UUID) -> list[Vote]:
    """Return the votes cast on a request, oldest first; whether they count is judged anew each time."""
    return list(Vote.objects.filter(approval_id=approval_id).order_by("voted_at", "id"))


def votes_by_request(approval_ids: Sequence[UUID]) -> dict[UUID, list[Vote]]:
    """Return `votes_of` many requests, in one query; a request without any is left out."""
    by_request: dict[UUID, list[Vote]] = {}
    rows = Vote.objects.filter(approval_id__in=approval_ids) if approval_ids else Vote.objects.none()
    for vote in rows.order_by("voted_at", "id"):
        by_request.setdefault(vote.approval_id, []).append(vote)
    return by_request


def unused_approved(step_id: UUID, proposal_hash: str) -> ApprovalView | None:
    """Return an approval of exactly this proposal that the step may still use, in a later attempt too."""
    at = clock.now()
    rows = requests().filter(step_id=step_id, proposal_hash=proposal_hash, state=ApprovalState.APPROVED)
    views = (approval_view(row) for row in rows.order_by("-requested_at"))
    return next((view for view in views if view.use(at) == "not-yet-used"), None)


def authorizations_of_attempts(attempt_ids: Iterable[UUID]) -> list[AuthorizationView]:
    """Return the authorizations of many attempts, oldest first."""
    rows = Authorization.objects.filter(attempt_id__in=list(attempt_ids)).order_by("authorized_at")
    return [authorization_view(row) for row in rows]


def approvals_by_id(approval_ids: Iterable[UUID]) -> dict[UUID, ApprovalView]:
    """Return requests by their ids."""
    return {row.id: approval_view(row) for row in requests().filter(pk__in=list(approval_ids))}


def authorizations_of_attempt(attempt_id: UUID) -> list[AuthorizationView]:
    """Return what an attempt was authorized to do; empty means that no gated effect may have happened."""
    rows = Authorization.objects.filter(attempt_id=attempt_id).order_by("authorized_at")
    return [authorization_view(row) for row in rows]
