"""What the decision page says: one function a part, all of it read in one transaction."""

from datetime import datetime
from typing import Any

from approvals.admin.proposals import Change, Shown, changes, shown
from approvals.errors import ProposalCorrupted
from approvals.selectors import (
    ApprovalView,
    Candidate,
    Judged,
    Right,
    approvals_of_step,
    approvals_of_subject,
    may_see_proposal,
    policy_revision,
    previous_of,
    proposal,
    refusal_for,
    right_to_decide,
    votes_judged,
    who_may_decide,
)
from approvals.states import ApprovalState
from approvals.subjects import Story, story_of
from factory import clock
from factory.admin.show import span
from factory.context import Context
from factory.errors import DomainError, Forbidden


def decision_page(ctx: Context, view: ApprovalView) -> dict[str, Any]:
    """Everything on the page of one request, for this person."""
    at = clock.now()
    right, refused = right_before(ctx, view)
    votes = votes_judged(view)
    needed = max(0, view.quorum - sum(one.counts for one in votes))
    seen, corrupted = _proposal(ctx, view)
    before, siblings = previous_of(view), _siblings(view)
    return {
        "view": view,
        "now": at,
        "use": view.use(at),
        "left": span((view.expires_at - at).total_seconds()),
        "overdue": at >= view.expires_at,
        "percent_left": _percent_left(view, at),
        "refused": refused,
        "may_decide": refused is None and view.is_pending and at < view.expires_at and not corrupted,
        "candidates": _candidates(view),
        "proposal": seen,
        "corrupted": corrupted,
        "previous": before,
        "round": 1 + sum(one.requested_at < view.requested_at for one in siblings),
        "waiting_now": next((one for one in siblings if one.is_pending and one.id != view.id), None),
        "since": _since(ctx, before, view),
        "votes": votes,
        "needed": needed,
        "voted": voted_already(right, votes) if right and needed else "",
        "acting_for": right.acting_for if right else "",
        "may_break_glass": _may_break_glass(ctx, view, at, refused),
        "policy": policy_revision(view.policy_id),
        "story": story_of(ctx, view),
        "lead": _lead(view),
        "consequence": _consequence(view),
    }


def right_before(ctx: Context, view: ApprovalView) -> tuple[Right | None, Forbidden | None]:
    """What the reader may decide by, or why they may not."""
    try:
        return right_to_decide(ctx, view), None
    except Forbidden as no:
        return None, no


def voted_already(right: Right, votes: list[Judged]) -> str:
    """Why the reader's yes would count for nothing: it is there already, or that of who shares the role."""
    for one in votes:
        if one.counts and right.people & {one.vote.person, one.vote.acting_for} - {""}:
            if one.vote.voter == right.subject:
                return "You have approved."
            return f"{one.vote.voter} has approved, and you share the role: the two of you count once."
    return ""


def _may_break_glass(ctx: Context, view: ApprovalView, at: datetime, refused: Forbidden | None) -> bool:
    """Only where it is the reader's one way to decide, or the way past a quorum."""
    open_ = view.is_pending and at < view.expires_at
    needed = view.quorum > 1 or refused is not None
    return open_ and needed and refusal_for(ctx, view, break_glass=True) is None


def _percent_left(view: ApprovalView, at: datetime) -> int:
    whole = (view.expires_at - view.requested_at).total_seconds()
    left = (view.expires_at - at).total_seconds()
    return max(0, min(100, round(100 * left / whole))) if whole > 0 else 0


def _candidates(view: ApprovalView) -> list[Candidate]:
    """Those whom the rule names, and the requester with the reason why not."""
    named = {view.requested_by, view.requester_person, view.author_person}
    return [c for c in who_may_decide(view.id) if c.may_decide or {c.subject, c.person} & named]


def _siblings(view: ApprovalView) -> list[ApprovalView]:
    return approvals_of_step(view.step_id) if view.step_id else approvals_of_subject(view.subject_id)


def _proposal(ctx: Context, view: ApprovalView) -> tuple[Shown | None, str]:
    if not may_see_proposal(ctx, view):
        return None, ""
    try:
        return shown(proposal(view.id)), ""
    except ProposalCorrupted as fault:
        return None, fault.detail


def _since(ctx: Context, before: ApprovalView | None, now: ApprovalView) -> list[Change]:
    """What is not as it was in the request before: what a returning reviewer looks at first."""
    if before is None or not (may_see_proposal(ctx, before) and may_see_proposal(ctx, now)):
        return []
    try:
        return changes(proposal(before.id), proposal(now.id))
    except DomainError:
        return []


def _lead(view: ApprovalView) -> str:
    """What a yes means, in one sentence, before anything is read."""
    if view.subject_type == "spend":
        return "If you approve, this run may cost up to so much, and begins. Nothing has been spent yet."
    if view.subject_type == "waiver":
        return (
            "If you approve, people are not asked about the writes that are named below, until its end, "
            "except runs of who asked for or decided it, and where the rule asks for more."
        )
    if view.subject_type == "run" and view.consumed_by_its_decision:
        return "The run asks a person and waits. It goes on with your answer, and not without one."
    yes = "If you approve" if view.quorum == 1 else f"Once {view.quorum} different people have approved"
    return (
        f"{yes}, exactly the proposal below happens, once. "
        "Nothing has happened yet, and nothing will without a decision."
    )


def _consequence(view: ApprovalView) -> dict[str, str]:
    """What each answer does, said on its button."""
    if view.subject_type == "publication":
        return {
            "approve": "The release is published, and the alias latest names it.",
            "reject": "The release goes back to Draft. Nothing is published.",
            "request_changes": "The release goes back to Draft with your words.",
        }
    if view.subject_type == "waiver":
        return {
            "approve": "Such a write is approved at once and names this waiver, except runs of who asked for "
            "or decided it, and where the rule asks for more. It can be revoked.",
            "reject": "Nothing is allowed in advance: people are asked about each write.",
            "request_changes": "It is refused with your words, and can be asked for again.",
        }
    if view.subject_type == "spend":
        return {
            "approve": "The money is set aside if the budgets have it, and the run begins.",
            "reject": "Nothing is set aside. The run fails (policy-denied), and can only be run again.",
        }
    if view.consumed_by_its_decision:
        return {
            "approve": "The run goes on: your answer is the whole of this step.",
            "reject": "The run fails (policy-denied) and cannot be resumed, only run again.",
        }
    hours = round(view.valid_for.total_seconds() / 3600)
    return {
        "approve": f"The run goes on. The agent may do exactly this, once, within {hours} h.",
        "reject": "Nothing is done. The run fails (policy-denied) and cannot be resumed, only run again.",
        "request_changes": "The agent reads your reason and proposes again.",
    }


def outcome_words(view: ApprovalView) -> str:
    """One sentence about a request that is over."""
    words = {
        ApprovalState.APPROVED: f"Approved by {_who(view)}.",
        ApprovalState.REJECTED: f"Rejected by {_who(view)}.",
        ApprovalState.EXPIRED: "Nobody answered in time. Silence is never a yes.",
        ApprovalState.CANCELLED: "Cancelled together with what it was about.",
    }
    if view.state == ApprovalState.STALE:
        return f"Sent back by {_who(view)}." if view.sent_back else "Replaced by a newer proposal."
    return words.get(ApprovalState(view.state), "")


def _who(view: ApprovalView) -> str:
    """Who decided, and how they came to: both names of a delegation, the broken glass, or a waiver."""
    if view.waiver_id is not None:
        return f"a waiver, which {view.decided_person} had given"
    who = f"{view.decided_by} for {view.decided_for}" if view.decided_for else view.decided_by
    return f"{who}, breaking the glass" if view.break_glass else who


__all__ = ["Shown", "Story", "decision_page", "outcome_words", "right_before", "shown", "voted_already"]
