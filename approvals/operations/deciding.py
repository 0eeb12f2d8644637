"""DecideApproval: a person's answer, with every refusal in the one order that is promised.

The one command that stands among the operations: other apps that publish in several commands decide by it.
"""

from datetime import datetime
from uuid import UUID

from approvals.errors import (
    AlreadyDecided,
    AnswerNotPossible,
    ApprovalExpired,
    ApprovalNotFound,
    ApprovalOver,
    NotEligible,
    ProposalMoved,
    ReasonMissing,
)
from approvals.events import ApprovalBreakGlass
from approvals.models import MAX_REASON, ApprovalRequest, DecisionAnswer
from approvals.operations.ballot import Ballot
from approvals.operations.closing import close
from approvals.selectors import (
    ApprovalView,
    Right,
    approval,
    approval_view,
    candidates,
    genuine,
    reachable,
    right_to_decide,
)
from approvals.states import ApprovalState, Decision, SubjectType
from approvals.subjects import subject_of
from factory.kernel import clock
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import DomainError, FieldError, InvalidInput
from factory.kernel.locking import lock
from factory.kernel.reasons import remark
from factory.kernel.recording import audit, named
from factory.kernel.text import is_blank
from projects.operations import hold_delegation

PROPOSED_AGAIN = frozenset({SubjectType.PUBLICATION, SubjectType.WAIVER})
CAUSES = {
    Decision.APPROVE: "Approve",
    Decision.REJECT: "Reject",
    Decision.REQUEST_CHANGES: "ChangesRequested",
}


@command("DecideApproval", strict=True)
def decide(
    ctx: Context,
    *,
    approval_id: UUID,
    decision: str,
    version: int,
    proposal_hash: str,
    reason: str = "",
    break_glass: bool = False,
) -> ApprovalView:
    """Decide, all in one transaction. Interfaces call `decide_approval`, which says what refuses."""
    answer, reason = _answer(decision, reason, break_glass)
    row = _locked(ctx, approval_id)
    try:
        right = right_to_decide(ctx, row, break_glass=break_glass)
        at = _require_open(row)
        _require_delegation(ctx, right, at)
        _require_same(row, version, proposal_hash)
        ballot = answer is Decision.APPROVE and not break_glass
        vote = Ballot(row, right, reason, at) if ballot else None
        enough = vote is None or vote.is_enough()
        genuine(row.proposal, row.proposal_hash)
        subject = subject_of(row.subject_type)
        _require_answerable(row, answer, break_glass)
        over = subject.refusal(approval_view(row))
        if over is not None:
            raise over
    except DomainError as refusal:
        raise _about(refusal, row) from None
    if vote is not None:
        vote.cast(ctx, final=enough)
    if enough:
        _close(ctx, row, answer, right, reason, at)
        subject.decided(ctx, approval_view(row))
    return approval(row.id)


def _close(
    ctx: Context, row: ApprovalRequest, decision: Decision, right: Right, reason: str, at: datetime
) -> None:
    passed_over = _passed_over(row, right) if right.break_glass else ()
    answer = DecisionAnswer(
        by=right.subject,
        person=right.person,
        reason=reason,
        acting_for=right.acting_for,
        delegation_id=right.delegation.delegation_id if right.delegation else None,
        break_glass=right.break_glass,
        passed_over=passed_over,
    )
    moves = {
        Decision.APPROVE: row.approve,
        Decision.REJECT: row.reject,
        Decision.REQUEST_CHANGES: row.request_changes,
    }
    moves[decision](answer, at=at)
    audit(
        ctx,
        "DecideApproval",
        subject=f"approval:{row.id}",
        reason=reason,
        detail={"decision": row.decision, "proposalHash": row.proposal_hash, "onBehalfOf": answer.acting_for},
        stream=row.stream,
    )
    close(ctx, row, CAUSES[decision], *(_broken(ctx, row) if right.break_glass else ()))


def _passed_over(row: ApprovalRequest, right: Right) -> tuple[str, ...]:
    """Return who could have decided at this moment, and was not asked."""
    able = (member for member in candidates(row, row.project_id) if member.may_decide)
    return tuple(member.subject for member in able if member.person != right.person)


def _broken(ctx: Context, row: ApprovalRequest) -> tuple[ApprovalBreakGlass]:
    """Break-glass leaves a mark of its own, beside the decision's: an audit entry and an event."""
    audit(
        ctx,
        "BreakGlass",
        subject=f"approval:{row.id}",
        reason=row.reason,
        detail={
            "decision": row.decision,
            "proposalHash": row.proposal_hash,
            "passedOver": named(row.passed_over),
        },
        stream=row.stream,
    )
    event = ApprovalBreakGlass(
        approval_id=row.id,
        run_id=row.run_id,
        tenant_id=row.tenant_id,
        state=str(row.state),
        decided_by=row.decided_by,
        reason=row.reason,
        passed_over=list(row.passed_over),
        subject=None if row.subject_type == SubjectType.RUN else f"{row.subject_type}:{row.subject_id}",
    )
    return (event,)


def _answer(decision: str, reason: str, break_glass: bool) -> tuple[Decision, str]:
    """Return the answer, and why, as they are kept; refuse a word that nobody defined."""
    try:
        answer = Decision(decision)
    except ValueError as fault:
        errors = [FieldError("/decision", f"One of {', '.join(Decision.values)}.")]
        raise InvalidInput("There is no such decision.", errors=errors) from fault
    if answer is Decision.REQUEST_CHANGES and is_blank(reason):
        errors = [FieldError("/reason", "Say what should change: it is what the worker gets.")]
        raise ReasonMissing("Requesting changes needs a reason.", errors=errors)
    if break_glass and is_blank(reason):
        errors = [FieldError("/reason", "Say why it could not wait: those who were passed over read it.")]
        raise ReasonMissing("Break-glass needs a reason.", errors=errors)
    return answer, remark(reason, most=MAX_REASON)


def _locked(ctx: Context, approval_id: UUID) -> ApprovalRequest:
    """Return the request with all that its answer moves, locked from the top."""
    missing = ApprovalNotFound(
        f"There is no approval {approval_id} here.", extra={"subject": f"approval:{approval_id}"}
    )
    unlocked = reachable(ctx).filter(pk=approval_id).values("subject_type", "subject_id", "run_id").first()
    if unlocked is None:
        raise missing
    subject_of(unlocked["subject_type"]).lock(ctx, unlocked["subject_id"], unlocked["run_id"])
    return lock(ApprovalRequest, approval_id, missing=missing)


def _require_open(row: ApprovalRequest) -> datetime:
    """Refuse a request that is closed or past its end; return the time of that, taken under the lock."""
    if row.decision:
        raise AlreadyDecided(f"{row.decided_by} has decided: {row.decision}.", extra=_decision_of(row))
    if row.state != ApprovalState.PENDING:
        raise ApprovalOver(f"The request is {row.state}: there is nothing left to decide.")
    at = clock.now()
    if at >= row.expires_at:
        raise ApprovalExpired(
            f"The request expired at {row.expires_at:%d %b %Y %H:%M:%S} UTC; nothing was decided.",
            extra={"evidence": {"version": row.version}},
        )
    return at


def _require_delegation(ctx: Context, right: Right, at: datetime) -> None:
    """Refuse a delegated role that is not delegated at the time of the decision itself."""
    if right.delegation is not None and not hold_delegation(ctx, right.delegation.delegation_id, at):
        raise NotEligible(f"The role was lent by {right.acting_for}, and is not lent any more.")


def _decision_of(row: ApprovalRequest) -> dict[str, object]:
    decided_at = row.decided_at.isoformat() if row.decided_at else None
    return {
        "decision": {
            "approvalId": str(row.id),
            "state": row.state,
            "decision": row.decision,
            "decidedBy": row.decided_by,
            "decidedAt": decided_at,
            "reason": row.reason,
            "version": row.version,
        }
    }


def _require_same(row: ApprovalRequest, version: int, proposal_hash: str) -> None:
    """Refuse an answer unless what was on the screen is what is stored: the version and the hash."""
    if row.version != version or row.proposal_hash != proposal_hash:
        raise ProposalMoved(
            "The request is not the one that was on the screen. Nothing was decided; look at it again.",
            extra={"currentVersion": row.version, "currentProposalHash": row.proposal_hash},
        )


def _about(refusal: DomainError, row: ApprovalRequest) -> DomainError:
    """Return the refusal with what it is about, for the audit log."""
    refusal.extra.setdefault("subject", f"approval:{row.id}")
    refusal.extra.setdefault("stream", row.stream)
    return refusal


def _require_answerable(row: ApprovalRequest, answer: Decision, break_glass: bool) -> None:
    """Refuse to send back what nobody could propose again, such as a human step or money.

    Break-glass is for what cannot wait; an approval in advance can, and a broken glass does not stay broken.
    """
    if break_glass and row.subject_type == SubjectType.WAIVER:
        raise AnswerNotPossible("No glass is broken for a waiver: those whom the rule names decide it.")
    if answer is not Decision.REQUEST_CHANGES or row.subject_type in PROPOSED_AGAIN:
        return
    if row.consumed_by_its_decision:
        what = "the money of a run" if row.subject_type == SubjectType.SPEND else "a human step"
        raise AnswerNotPossible(f"This is about {what}: approve or reject it, nobody could propose again.")
