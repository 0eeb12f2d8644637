"""How approvals come back after a restore: brought up to what the journal says was decided."""

from collections.abc import Mapping
from typing import Any

from approvals.models import ApprovalRequest, PolicyRevision, Waiver
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
    """In force only with the names of those who gave it, which stand in the event; else a CHECK refuses."""
    data, given = said.data, said.state == "Active"
    deciders = list(data.get("deciders") or row.deciders)
    ended = said.state in ("Refused", "Revoked", "Expired")
    by = data.get("changedBy", "")
    return {
        "approval_id": data.get("approvalId") or row.approval_id,
        "deciders": deciders,
        "decided_at": row.decided_at or (said.at if given or deciders else None),
        "decided_by": row.decided_by or (by if given else ""),
        "decided_person": row.decided_person or (by if given else ""),
        "ended_at": said.at if ended else None,
        "ended_by": by if ended else "",
        "end_reason": (data.get("reason") or row.end_reason) if ended else "",
        "version": row.version + 1,
    }


repairs("approvals", PolicyRevision)
repairs("approvals", Waiver, _waiver)
