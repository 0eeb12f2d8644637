"""What the decision page shows: one function a part, all of it read in one transaction."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from approvals.admin.detail import labels
from approvals.admin.detail.changes import Since, compare
from approvals.admin.detail.proposal import Shown, shown
from approvals.errors import ProposalCorrupted
from approvals.policy.messages import duration
from approvals.selectors import (
    ApprovalView,
    EligibilityResult,
    Right,
    approvals_of_step,
    approvals_of_subject,
    cancelled_by,
    may_see_proposal,
    policy_revision,
    previous_of,
    proposal,
    refusal_for,
    right_to_decide,
    voted_already,
    votes_judged,
    who_may_decide,
)
from approvals.subjects import Timeline, TimelineEntry, subject_of, why_unanswerable
from factory.console.show import span
from factory.kernel import clock
from factory.kernel.context import Context
from factory.kernel.errors import DomainError, Forbidden

MOST_MOMENTS = 12
"""A longer story is folded in its middle."""
SOON = 0.15
"""Of the time for an answer, so much is its end."""


def standing(ctx: Context, view: ApprovalView) -> dict[str, Any]:
    """Return what may change while the page is open: nothing of the proposal, which never does."""
    at = clock.now()
    right, refused = right_before(ctx, view)
    votes = votes_judged(view)
    needed = max(0, view.quorum - sum(one.counts for one in votes))
    siblings = _siblings(view)
    candidates = _candidates(view)
    story = subject_of(view.subject_type).timeline(ctx, view)
    open_ = view.is_pending and at < view.expires_at
    stops = why_unanswerable(view)
    stops_now = stops if open_ else ""
    return {
        "view": view,
        "now": at,
        "use": view.use(at),
        "left": span((view.expires_at - at).total_seconds()),
        "whole": _whole(view.expires_at - view.requested_at),
        "overdue": at >= view.expires_at,
        "open": open_,
        "stops": stops_now,
        "percent_left": _percent_left(view, at),
        "soon": _percent_left(view, at) <= 100 * SOON,
        "refused": refused,
        "candidates": candidates,
        "others": sum(one.may_decide and one.person != ctx.actor.person for one in candidates),
        "number": _number(siblings, view),
        "siblings": siblings,
        "waiting_now": next((one for one in siblings if one.is_pending and one.id != view.id), None),
        "votes": votes,
        "needed": needed,
        "voted": voted_already(right, votes) if right and needed else "",
        "acting_for": right.acting_for if right else "",
        "by_what": labels.by_what(right) if right else "",
        "own": bool({ctx.actor.subject, ctx.actor.person} & {view.requested_by, view.requester_person}),
        "may_break_glass": not stops and _may_break_glass(ctx, view, at, refused),
        "silence": labels.silence(view, stops),
        "again": view.may_be_renewed and not stops,
        "lead": labels.lead(view, None, may_decide=False, stops=stops_now) if stops_now else "",
        "story": story,
        "moments": _folded(story),
        "over": labels.outcome(view, cancelled_by(view)),
    }


def decision_page(ctx: Context, view: ApprovalView) -> dict[str, Any]:
    """Everything on the page of one request, for this person."""
    here = standing(ctx, view)
    before = previous_of(view)
    number = _number(here["siblings"], before) if before else 0
    since = _since(ctx, before, view, number)
    seen, corrupted = _proposal(ctx, view, since)
    story: Timeline | None = here["story"]
    may_decide = here["refused"] is None and here["open"] and not corrupted and not here["stops"]
    return here | {
        "may_decide": may_decide,
        "proposal": seen,
        "corrupted": corrupted,
        "previous": before,
        "previous_number": number,
        "since": since,
        "unused": labels.unused(view, here["siblings"], here["now"]),
        "policy": policy_revision(view.policy_id),
        "question": labels.question(view, seen, story),
        "lead": labels.lead(view, seen, may_decide=here["refused"] is None, stops=here["stops"]),
        "why": labels.why(view),
        "fixed": labels.fixed(view),
        "consequence": labels.consequence(view),
    }


def moved_on(ctx: Context, here: dict[str, Any]) -> dict[str, Any]:
    """From the proposal that was read to the one that waits now, and whether the reader may decide on it."""
    view, after = here["view"], here["waiting_now"]
    if after is None:
        return {}
    return {
        "now_number": _number(here["siblings"], after),
        "now_left": span((after.expires_at - here["now"]).total_seconds()),
        "now_refused": refusal_for(ctx, after),
        "now_since": _since(ctx, view, after, here["number"]),
    }


def right_before(ctx: Context, view: ApprovalView) -> tuple[Right | None, Forbidden | None]:
    """Return what the reader may decide by, or why they may not."""
    try:
        return right_to_decide(ctx, view), None
    except Forbidden as no:
        return None, no


def _may_break_glass(ctx: Context, view: ApprovalView, at: datetime, refused: Forbidden | None) -> bool:
    """Only where it is the reader's one way to decide, or the way past a quorum."""
    open_ = view.is_pending and at < view.expires_at
    needed = view.quorum > 1 or refused is not None
    return open_ and needed and refusal_for(ctx, view, break_glass=True) is None


def _whole(told: timedelta) -> str:
    """The time for an answer as the policy says it; a pause of the project has made it longer."""
    return span(told.total_seconds()) if told % timedelta(hours=1) else duration(told)


def _percent_left(view: ApprovalView, at: datetime) -> int:
    whole = (view.expires_at - view.requested_at).total_seconds()
    left = (view.expires_at - at).total_seconds()
    return max(0, min(100, round(100 * left / whole))) if whole > 0 else 0


def _candidates(view: ApprovalView) -> list[EligibilityResult]:
    """Those whom the rule names, and the requester with the reason why not."""
    named = {view.requested_by, view.requester_person, view.author_person}
    return [c for c in who_may_decide(view.id) if c.may_decide or {c.subject, c.person} & named]


def _siblings(view: ApprovalView) -> list[ApprovalView]:
    return approvals_of_step(view.step_id) if view.step_id else approvals_of_subject(view.subject_id)


def _number(siblings: Sequence[ApprovalView], view: ApprovalView) -> int:
    """Return which proposal of its step or subject it is."""
    return 1 + sum((one.requested_at, one.id) < (view.requested_at, view.id) for one in siblings)


def _proposal(ctx: Context, view: ApprovalView, since: Since | None) -> tuple[Shown | None, str]:
    if not may_see_proposal(ctx, view):
        return None, ""
    try:
        return shown(proposal(view.id), since.tags if since else None), ""
    except ProposalCorrupted as fault:
        return None, fault.detail


def _since(ctx: Context, before: ApprovalView | None, now: ApprovalView, number: int) -> Since | None:
    """Return what is not as it was in the request before: what a returning reviewer looks at first."""
    if before is None or not (may_see_proposal(ctx, before) and may_see_proposal(ctx, now)):
        return None
    try:
        return compare(proposal(before.id), proposal(now.id), number)
    except DomainError:
        return None


def _folded(
    story: Timeline | None,
) -> tuple[Sequence[TimelineEntry], Sequence[TimelineEntry], Sequence[TimelineEntry]]:
    """Return what happened, in three parts: the first is open, the second folded, the third open."""
    told = story.moments if story else ()
    if len(told) <= MOST_MOMENTS:
        return told, (), ()
    cut = len(told) - MOST_MOMENTS + 3
    return told[:2], told[2:cut], told[cut:]


__all__ = ["decision_page", "moved_on", "right_before", "standing"]
