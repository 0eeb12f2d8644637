"""How projects, and who may do what in them, come back after a restore: as the journal says."""

from collections.abc import Mapping
from typing import Any

from factory.evidence.journal_replay import Recorded, audited_reason, repairs
from projects.models import Delegation, Identity, Membership, Project, ServiceAccount


def _project(row: Project, journal: Recorded) -> Mapping[str, Any]:
    """Put a project back. The reason why it was suspended or killed stands in the audit log."""
    if journal.state == "Active":
        active = {"suspended_at": None, "suspension_reason": "", "killing_since": None}
        return {**active, "killed_by": "", "kill_reason": "", "updated_at": journal.at}
    since = journal.entered
    thrown = journal.last("KillSwitchThrown")
    killed = thrown is not None and thrown.at >= since.at
    why = audited_reason(row, "KillProject") if killed else ""
    suspended = "KillProject" if since.cause == "KillSwitchThrown" else "SuspendProject"
    return {
        "suspended_at": since.at,
        "suspension_reason": audited_reason(row, suspended),
        "killing_since": journal.at if journal.cause == "KillSwitchThrown" else None,
        "killed_by": thrown.actor if killed and thrown else "",
        "kill_reason": why,
        "updated_at": journal.at,
    }


def _membership(row: Membership, journal: Recorded) -> Mapping[str, Any]:
    given = journal.last("MemberChanged", "MemberAdded")
    held = {name: given.data[name] for name in ("roles", "grants")} if given else {}
    return {**held, "removed_at": journal.reached("Removed"), "updated_at": journal.at}


def _account(row: ServiceAccount, journal: Recorded) -> Mapping[str, Any]:
    return {"revoked_at": journal.reached("Revoked"), "updated_at": journal.at}


def _identity(row: Identity, journal: Recorded) -> Mapping[str, Any]:
    over = journal.state != "Active"
    return {"ended_at": journal.at if over else None, "ended_by": journal.actor if over else ""}


def _delegation(row: Delegation, journal: Recorded) -> Mapping[str, Any]:
    over = journal.state != "Active"
    return {"ended_at": journal.at if over else None, "ended_by": journal.actor if over else ""}


def register() -> None:
    """Register what a restore of this app needs: how its rows come back."""
    repairs("journal", Project, _project)
    repairs("journal", Membership, _membership)
    repairs("journal", ServiceAccount, _account)
    repairs("journal", Delegation, _delegation)
    repairs("journal", Identity, _identity)
