"""How approvals come back after a restore: brought up to what the journal says was decided."""

from collections.abc import Mapping
from typing import Any

from approvals.models import ApprovalRequest, PolicyRevision
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
repairs("approvals", PolicyRevision)
