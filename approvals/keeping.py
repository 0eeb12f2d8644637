"""How approvals come back after a restore: brought up to what the journal says was decided."""

from collections.abc import Mapping
from typing import Any

from approvals.models import ApprovalRequest, PolicyRevision, Waiver
from approvals.selectors import approval_view, deciders_of, requests
from approvals.states import ApprovalState, WaiverState
from factory.models import JournalEntry, OutboxEvent
from factory.recovery import Recorded, repairs


def _request(row: ApprovalRequest, said: Recorded) -> Mapping[str, Any]:
    """Who decided stands in the event; a decision that nobody can name is left to a person."""
    data = said.data
    return {
        "closed_at": None if said.state == "Pending" else said.at,
        "decision": data.get("decision") or row.decision,
        "decided_by": data.get("decidedBy") or row.decided_by,
        "decided_person": data.get("decidedBy") or row.decided_person,
        "decided_at": said.at if data.get("decidedBy") else row.decided_at,
        "reason": data.get("reason") or row.reason,
        "version": row.version + 1,
    }


repairs("approvals", ApprovalRequest, _request)


def _waiver(row: Waiver, said: Recorded) -> Mapping[str, Any]:
    """Who ended it stands in the last event, who gave it may stand further back; else a CHECK refuses."""
    data, ended = said.data, said.state in ("Refused", "Revoked", "Expired")
    approval_id = data.get("approvalId") or row.approval_id
    return {
        "approval_id": approval_id,
        **(_given(row, approval_id) if row.decided_at is None else {}),
        "ended_at": said.at if ended else None,
        "ended_by": data.get("changedBy", "") if ended else "",
        "end_reason": _end_reason(row, said) if ended else "",
        "version": row.version + 1,
    }


def _end_reason(row: Waiver, said: Recorded) -> str:
    """The event of an end that has no reason of its own tells why the waiver was asked for."""
    told = said.data.get("reason") or ""
    return told if said.state == WaiverState.REVOKED or told != row.reason else ""


def _given(row: Waiver, approval_id: Any) -> Mapping[str, Any]:
    """Who gave it, where the journal says that it was given: as its request says, or as was told then."""
    moved = JournalEntry.objects.filter(entity_id=row.id, to_state=WaiverState.ACTIVE)
    entry = moved.order_by("sequence").first()
    if entry is None:
        return {}
    signed = requests().filter(pk=approval_id, subject_id=row.id, state=ApprovalState.APPROVED).first()
    if signed is not None:
        view = approval_view(signed)
        names = {name: getattr(view, name) for name in ("decided_at", "decided_by", "decided_person")}
        return {**names, "deciders": sorted(deciders_of(view))}
    told = OutboxEvent.objects.filter(id__in=[event["id"] for event in entry.events]).first()
    by = told.payload.get("changedBy", "") if told else ""
    deciders = told.payload.get("deciders", []) if told else []
    return {"decided_at": entry.occurred_at, "decided_by": by, "decided_person": by, "deciders": deciders}


repairs("approvals", PolicyRevision)
repairs("approvals", Waiver, _waiver)
