"""What the decision page says: one function a part, all of it read in one transaction."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from approvals.errors import ProposalCorrupted
from approvals.selectors import (
    ApprovalView,
    Candidate,
    ProposalView,
    approvals_of_step,
    approvals_of_subject,
    may_see_proposal,
    policy_revision,
    previous_of,
    proposal,
    refusal_for,
    who_may_decide,
)
from approvals.states import ApprovalState
from approvals.subjects import Story, story_of
from factory import clock
from factory.admin.diffs import File, files_of
from factory.admin.show import span
from factory.context import Context
from factory.errors import DomainError

SHOWN = 1_048_576


@dataclass(frozen=True, slots=True)
class Shown:
    """A proposal as it is shown: by its kind, or as the JSON that was hashed."""

    kind: str
    facts: tuple[tuple[str, str], ...]
    message: str
    files: list[File] | None
    text: str
    size: int


def decision_page(ctx: Context, view: ApprovalView) -> dict[str, Any]:
    """Everything on the page of one request, for this person."""
    at = clock.now()
    refused = refusal_for(ctx, view)
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
        "since": _since(ctx, before, seen),
        "policy": policy_revision(view.policy_id),
        "story": story_of(ctx, view),
        "consequence": _consequence(view),
    }


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


def shown(stored: ProposalView) -> Shown:
    """A proposal for the page. What is no known kind is shown as indented JSON."""
    content = stored.content if isinstance(stored.content, dict) else {"value": stored.content}
    diff = content.get("diff")
    files = files_of(diff) if isinstance(diff, str) and len(diff) <= SHOWN else None
    hidden = {"diff", "files", "kind", "message"} if files is not None else {"kind"}
    facts = tuple((_label(k), str(v)) for k, v in content.items() if k not in hidden and _is_plain(v))
    rest = {k: v for k, v in content.items() if k not in hidden and not _is_plain(v)}
    text = json.dumps(rest, indent=2, ensure_ascii=False)[:SHOWN] if rest else ""
    message = content.get("message") if files is not None else None
    return Shown(
        kind=str(content.get("kind", "")),
        facts=facts,
        message=message if isinstance(message, str) else "",
        files=files,
        text=text,
        size=stored.size,
    )


def _is_plain(value: Any) -> bool:
    return isinstance(value, int | float | bool) or (isinstance(value, str) and len(value) <= 300)


def _label(name: str) -> str:
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in name)
    return words[:1].upper() + words[1:]


def _since(ctx: Context, before: ApprovalView | None, now: Shown | None) -> list[tuple[str, str]]:
    """For each file, how it differs from the proposal before: what a returning reviewer looks at first."""
    if before is None or now is None or now.files is None or not may_see_proposal(ctx, before):
        return []
    try:
        old = shown(proposal(before.id))
    except DomainError:
        return []
    was = {f.path: f.lines for f in old.files or []}
    told = [(f.path, _difference(was.get(f.path), f.lines)) for f in now.files]
    gone = set(was) - {f.path for f in now.files}
    return told + [(path, "no longer touched") for path in sorted(gone)]


def _difference(was: Any, lines: Any) -> str:
    if was is None:
        return "not in the proposal before"
    return "as in the proposal before" if was == lines else "differs from the proposal before"


def _consequence(view: ApprovalView) -> dict[str, str]:
    """What each answer does, said on its button."""
    if view.subject_type == "publication":
        return {
            "approve": "The release is published, and the alias latest names it.",
            "reject": "The release goes back to Draft. Nothing is published.",
            "request_changes": "The release goes back to Draft with your words.",
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
        ApprovalState.APPROVED: f"Approved by {view.decided_by}.",
        ApprovalState.REJECTED: f"Rejected by {view.decided_by}.",
        ApprovalState.EXPIRED: "Nobody answered in time. Silence is never a yes.",
        ApprovalState.CANCELLED: "Cancelled together with what it was about.",
    }
    if view.state == ApprovalState.STALE:
        return f"Sent back by {view.decided_by}." if view.sent_back else "Replaced by a newer proposal."
    return words.get(ApprovalState(view.state), "")


__all__ = ["Shown", "Story", "decision_page", "outcome_words", "shown"]
