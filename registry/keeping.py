"""How releases come back after a restore: brought up to what the journal says became of them."""

from collections.abc import Mapping
from typing import Any

from factory.recovery import Recorded, repairs
from registry.models import Alias, Release


def _release(row: Release, said: Recorded) -> Mapping[str, Any]:
    return {
        "published_at": row.published_at or (said.at if said.state == "Published" else None),
        "deprecated_at": row.deprecated_at or (said.at if said.state == "Deprecated" else None),
        "revoked_at": row.revoked_at or (said.at if said.state == "Revoked" else None),
        "approval_id": None if said.state == "Draft" else row.approval_id,
        "evaluation_id": None if said.state == "Draft" else row.evaluation_id,
        "in_flight": said.data.get("inFlight") or row.in_flight,
        "ending_reason": said.data.get("reason") or row.ending_reason,
    }


repairs("releases", Release, _release)
repairs("releases", Alias)
