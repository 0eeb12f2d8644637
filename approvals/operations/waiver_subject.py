"""A waiver as the subject of an approval: it comes into force, or is refused, with the decision."""

from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from approvals.errors import WaiverNotAsked, WaiverNotFound
from approvals.models import Waiver
from approvals.operations.waiving import waiver_changed
from approvals.selectors import ApprovalView, deciders_of
from approvals.states import ApprovalState, SubjectType, WaiverState
from approvals.subjects import Obstacle, Subject
from factory.kernel.clock import now
from factory.kernel.context import Context
from factory.kernel.locking import lock
from factory.kernel.recording import record

REFUSED = {
    ApprovalState.REJECTED: "ApprovalRejected",
    ApprovalState.EXPIRED: "ApprovalExpired",
    ApprovalState.STALE: "ChangesRequested",
}


class WaiverSubject(Subject):
    """Move a waiver when somebody, or nobody, decides on it."""

    kind = SubjectType.WAIVER

    def lock(self, ctx: Context, subject_id: UUID, run_id: UUID | None) -> None:
        _locked(subject_id)

    def obstacles(self) -> tuple[Obstacle, ...]:
        waiver: QuerySet[Waiver] = Waiver.objects.filter(pk=OuterRef("subject_id"))
        requested = Q(state=WaiverState.REQUESTED, approval_id=OuterRef("pk"))
        return (
            Obstacle(Q(Exists(waiver.filter(~requested))), _not_asked),
            Obstacle(Q(Exists(waiver.filter(expires_at__lte=Now()))), _too_late),
        )

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


def _not_asked(view: ApprovalView) -> WaiverNotAsked:
    state = Waiver.objects.get(pk=view.subject_id).state
    return WaiverNotAsked(f"The waiver is {state}: nobody needs an answer any more.")


def _too_late(view: ApprovalView) -> WaiverNotAsked:
    end = Waiver.objects.get(pk=view.subject_id).expires_at
    return WaiverNotAsked(f"The waiver would have ended at {end:%d %b %Y %H:%M:%S} UTC.")


def _locked(waiver_id: UUID) -> Waiver:
    return lock(Waiver, waiver_id, missing=WaiverNotFound("There is no such waiver here."))
