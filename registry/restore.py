"""How releases come back after a restore: brought up to what the journal says became of them."""

from collections.abc import Mapping
from typing import Any

from factory.evidence.journal_replay import Recorded, repairs
from registry.models import Alias, AliasMove, Closure, EvaluationRecord, Release


def _release(row: Release, journal: Recorded) -> Mapping[str, Any]:
    """Put a release back. What its commit and a suite said of it stands in rows that only grow."""
    review, resolution = journal.last("ReviewRequested"), journal.last("ClosureResolved")
    draft, over = journal.state == "Draft", journal.state in ("Deprecated", "Revoked")
    closure = Closure.objects.filter(hash=resolution.data["hash"]).first() if resolution else None
    closure_id = closure.id if closure else row.closure_id
    until = review.at if review else journal.at
    judged = EvaluationRecord.objects.filter(closure_id=closure_id, recorded_at__lte=until)
    return {
        "closure_id": closure_id,
        "next_resolution_at": None if closure_id or not draft else row.next_resolution_at,
        "approval_id": None if draft or not review else review.data["approvalId"],
        "evaluation_id": None if draft else judged.order_by("-id").values_list("id", flat=True).first(),
        "published_at": journal.reached("Published"),
        "deprecated_at": journal.reached("Deprecated"),
        "revoked_at": journal.reached("Revoked"),
        "in_flight": journal.data.get("inFlight", "") if over else "",
        "ending_reason": journal.data.get("reason", "") if over else "",
    }


def _alias(row: Alias, journal: Recorded) -> Mapping[str, Any]:
    return {"release_id": AliasMove.objects.filter(alias_id=row.id).latest("version").release_id}


def register() -> None:
    """Register what a restore of this app needs: how its rows come back."""
    repairs("releases", Release, _release)
    repairs("releases", Alias, _alias)
