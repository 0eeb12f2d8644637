"""How releases come back after a restore: brought up to what the journal says became of them."""

from collections.abc import Mapping
from typing import Any

from factory.evidence.journal_replay import Recorded, repairs
from registry.models import Alias, AliasMove, Closure, EvaluationRecord, Release


def _release(row: Release, said: Recorded) -> Mapping[str, Any]:
    """What was found of its commit, and what a suite said of it, stand in rows that only grow."""
    asked, found = said.last("ReviewRequested"), said.last("ClosureResolved")
    draft, over = said.state == "Draft", said.state in ("Deprecated", "Revoked")
    closure = Closure.objects.filter(hash=found.data["hash"]).first() if found else None
    closure_id = closure.id if closure else row.closure_id
    until = asked.at if asked else said.at
    judged = EvaluationRecord.objects.filter(closure_id=closure_id, recorded_at__lte=until)
    return {
        "closure_id": closure_id,
        "next_resolution_at": None if closure_id or not draft else row.next_resolution_at,
        "approval_id": None if draft or not asked else asked.data["approvalId"],
        "evaluation_id": None if draft else judged.order_by("-id").values_list("id", flat=True).first(),
        "published_at": said.reached("Published"),
        "deprecated_at": said.reached("Deprecated"),
        "revoked_at": said.reached("Revoked"),
        "in_flight": said.data.get("inFlight", "") if over else "",
        "ending_reason": said.data.get("reason", "") if over else "",
    }


def _alias(row: Alias, said: Recorded) -> Mapping[str, Any]:
    return {"release_id": AliasMove.objects.filter(alias_id=row.id).latest("version").release_id}


repairs("releases", Release, _release)
repairs("releases", Alias, _alias)
