"""How projects, and who may do what in them, come back after a restore: as the journal says."""

from collections.abc import Mapping
from typing import Any

from factory.evidence.journal_replay import Recorded, audited_reason, repairs
from projects.models import Delegation, Identity, Membership, Project, ServiceAccount


def _project(row: Project, said: Recorded) -> Mapping[str, Any]:
    """Why it was suspended or killed stands in the audit log."""
    if said.state == "Active":
        standing = {"suspended_at": None, "suspension_reason": "", "killing_since": None}
        return {**standing, "killed_by": "", "kill_reason": "", "updated_at": said.at}
    since = said.entered
    thrown = said.last("KillSwitchThrown")
    killed = thrown is not None and thrown.at >= since.at
    why = audited_reason(row, "KillProject") if killed else ""
    suspended = "KillProject" if since.cause == "KillSwitchThrown" else "SuspendProject"
    return {
        "suspended_at": since.at,
        "suspension_reason": audited_reason(row, suspended),
        "killing_since": said.at if said.cause == "KillSwitchThrown" else None,
        "killed_by": thrown.actor if killed and thrown else "",
        "kill_reason": why,
        "updated_at": said.at,
    }


def _membership(row: Membership, said: Recorded) -> Mapping[str, Any]:
    given = said.last("MemberChanged", "MemberAdded")
    held = {name: given.data[name] for name in ("roles", "grants")} if given else {}
    return {**held, "removed_at": said.reached("Removed"), "updated_at": said.at}


def _account(row: ServiceAccount, said: Recorded) -> Mapping[str, Any]:
    return {"revoked_at": said.reached("Revoked"), "updated_at": said.at}


def _identity(row: Identity, said: Recorded) -> Mapping[str, Any]:
    over = said.state != "Active"
    return {"ended_at": said.at if over else None, "ended_by": said.actor if over else ""}


def _delegation(row: Delegation, said: Recorded) -> Mapping[str, Any]:
    over = said.state != "Active"
    return {"ended_at": said.at if over else None, "ended_by": said.actor if over else ""}


repairs("journal", Project, _project)
repairs("journal", Membership, _membership)
repairs("journal", ServiceAccount, _account)
repairs("journal", Delegation, _delegation)
repairs("journal", Identity, _identity)
