"""A waiver as the subject of an approval: it comes into force, or is refused, with the decision."""

from uuid import UUID

from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from approvals.errors import WaiverNotAsked, WaiverNotFound
from approvals.models import Waiver
from approvals.operations.waiving import waiver_changed
from approvals.selectors import ApprovalView, deciders_of
from approvals.states import ApprovalState, SubjectType, WaiverState
from approvals.subjects import Timeline, register
from factory.kernel.clock import now
from factory.kernel.context import Context
from factory.kernel.errors import DomainError
from factory.kernel.locking import lock
from factory.kernel.recording import record

REFUSED = {
    ApprovalState.REJECTED: "ApprovalRejected",
    ApprovalState.EXPIRED: "ApprovalExpired",
    ApprovalState.STALE: "ChangesRequested",
}


class AdvanceApproval:
    """What happens to a waiver when somebody, or nobody, decides on it."""

    def lock(self, ctx: Context, subject_id: UUID, run_id: UUID | None) -> None:
        _locked(subject_id)

    def still_current(self, ctx: Context, view: ApprovalView) -> DomainError | None:
        return _outdated(_locked(view.subject_id), view)

    def stops(self, ctx: Context, view: ApprovalView) -> DomainError | None:
        row = Waiver.objects.filter(pk=view.subject_id).first()
        return _outdated(row, view) if row is not None else None

    def stopped(self) -> Q:
        asked = Q(state=WaiverState.REQUESTED, approval_id=OuterRef("pk"), expires_at__gt=Now())
        return Q(Exists(Waiver.objects.filter(~asked, pk=OuterRef("subject_id"))))

    def decided(self, ctx: Context, view: ApprovalView) -> None:
        """Approved: in force from now on. Rejected, sent back or expired: refused, for good."""
        row = _locked(view.subject_id)
        if row.state != WaiverState.REQUESTED or row.approval_id != view.id:
            return
        if view.state == ApprovalState.APPROVED:
            at = view.decided_at or now()
            row.activate(at=at, by=view.decided_by, person=view.decided_person, deciders=deciders_of(view))
            record(ctx, row, "ApprovalGranted", waiver_changed(ctx, row), detail={"approvalId": view.id})
            return
        row.refuse(at=now(), by=view.decided_by or ctx.actor.subject, reason=view.reason)
        cause = REFUSED[ApprovalState(view.state)]
        record(ctx, row, cause, waiver_changed(ctx, row), detail={"approvalId": view.id})

    def renewed(self, ctx: Context, old: ApprovalView, new: ApprovalView) -> None:
        """It goes on waiting, for the fresh request."""
        row = _locked(new.subject_id)
        if row.state == WaiverState.REQUESTED:
            row.renew(approval_id=new.id)
            record(ctx, row, "AskedAgain", detail={"approvalId": new.id})

    def story(self, ctx: Context, view: ApprovalView) -> Timeline | None:
        """The proposal says all that there is."""
        return None


def _outdated(row: Waiver, view: ApprovalView) -> DomainError | None:
    if row.state != WaiverState.REQUESTED or row.approval_id != view.id:
        return WaiverNotAsked(f"The waiver is {row.state}: nobody needs an answer any more.")
    if now() >= row.expires_at:
        return WaiverNotAsked(f"The waiver would have ended at {row.expires_at:%d %b %Y %H:%M:%S} UTC.")
    return None


def _locked(waiver_id: UUID) -> Waiver:
    return lock(Waiver, waiver_id, missing=WaiverNotFound("There is no such waiver here."))


register(SubjectType.WAIVER, AdvanceApproval())
