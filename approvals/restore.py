"""How approvals come back after a restore: brought up to what the journal says was decided."""

from collections.abc import Mapping
from typing import Any

from approvals.models import ApprovalRequest, PolicyRevision, Vote, Waiver
from approvals.selectors import approval_view, deciders_of, requests
from approvals.states import ApprovalState, WaiverState
from factory.evidence.journal_replay import Recorded, repairs


def _request(row: ApprovalRequest, recorded: Recorded) -> Mapping[str, Any]:
    """Return who answered, when and how, from the entry that closed it, and who voted, from the votes."""
    closed, started = recorded.entered, recorded.last("ValidityStarted")
    resumed = recorded.last("ValidityResumed")
    data, decision = closed.data, closed.data.get("decision", "")
    by = (data.get("decidedBy") or closed.actor) if decision else ""
    at = (data.get("decidedAt") or closed.at) if decision else None
    return {
        "votes": Vote.objects.filter(approval_id=row.id).count(),
        "decision": decision,
        "decided_by": by,
        "decided_person": (data.get("decidedPerson") or by) if decision else "",
        "decided_for": data.get("onBehalfOf") or "",
        "delegation_id": data.get("delegationId"),
        "break_glass": bool(data.get("breakGlass")),
        "passed_over": data.get("passedOver", []),
        "decided_at": at,
        "closed_at": None if recorded.state == ApprovalState.PENDING else at or closed.at,
        "reason": data.get("reason") or row.reason,
        "valid_until": resumed.data["validUntil"]
        if resumed
        else row.valid_until or (started.at + row.valid_for if started else None),
    }


def _waiver(row: Waiver, recorded: Recorded) -> Mapping[str, Any]:
    """Return who ended it, from the last event, and who gave it, which may stand further back."""
    data, ended = recorded.data, recorded.state in ("Refused", "Revoked", "Expired")
    approval_id = data.get("approvalId") or row.approval_id
    return {
        "approval_id": approval_id,
        **(_given(row, recorded, approval_id) if row.decided_at is None else {}),
        "ended_at": recorded.at if ended else None,
        "ended_by": data.get("changedBy", "") if ended else "",
        "end_reason": _end_reason(row, recorded) if ended else "",
    }


def _end_reason(row: Waiver, recorded: Recorded) -> str:
    """Return the reason of its end: an event without one of its own tells why the waiver was asked for."""
    reason = recorded.data.get("reason") or ""
    return reason if recorded.state == WaiverState.REVOKED or reason != row.reason else ""


def _given(row: Waiver, recorded: Recorded, approval_id: Any) -> Mapping[str, Any]:
    """Return who gave it, if the journal says that it was given: by its request, or by the event."""
    entry = recorded.last("ApprovalGranted")
    if entry is None:
        return {}
    signed = requests().filter(pk=approval_id, subject_id=row.id, state=ApprovalState.APPROVED).first()
    if signed is not None:
        view = approval_view(signed)
        names = {name: getattr(view, name) for name in ("decided_at", "decided_by", "decided_person")}
        return {**names, "deciders": sorted(deciders_of(view))}
    by, deciders = entry.data.get("changedBy", ""), entry.data.get("deciders", [])
    return {"decided_at": entry.at, "decided_by": by, "decided_person": by, "deciders": deciders}


def register() -> None:
    """Register what a restore of this app needs: how its rows come back."""
    repairs(
        "approvals",
        ApprovalRequest,
        _request,
        behind="e.votes <> (SELECT count(*) FROM approvals_vote v WHERE v.approval_id = e.id)",
        unversioned=("VoteCast",),
    )
    repairs("approvals", PolicyRevision)
    repairs("approvals", Waiver, _waiver)
