"""What the keeping of the evidence has to know about runs: which have ended, and how they come back."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from django.db import connections

from factory.anchoring.taking import anchored_fact
from factory.auditing import Report, Violation, reaction
from factory.context import system
from factory.recovery import Leave, Recorded, follows, raises_epoch, repairs, why
from factory.retention import ended_streams
from factory.tenancy import reading, scanning
from runs.commands import freeze_run, recover_lease
from runs.models import Attempt, Lease, Run, Step
from runs.selectors import concerned
from runs.states import ATTEMPT_TERMINAL, LEASE_TERMINAL, RUN_TERMINAL, STEP_TERMINAL

log = structlog.get_logger("runs.keeping")


@reaction
def freeze_what_is_in_doubt(report: Report) -> None:
    """Each run that a violation is about stands still until a PlatformAdmin has looked at it."""
    by_tenant: dict[str, list[Violation]] = {}
    for violation in report.violations:
        if violation.tenant_id:
            by_tenant.setdefault(violation.tenant_id, []).append(violation)
    for tenant, found in by_tenant.items():
        house = system(tenant, "Auditor")
        with reading(house):
            runs = concerned(v.subject for v in found)
        told: dict[UUID, list[str]] = {}
        for v in found:
            if v.subject in runs:
                told.setdefault(runs[v.subject], []).append(f"{v.code} {v.subject}")
        for run_id in sorted(told):
            try:
                freeze_run(house, run_id=run_id, findings=told[run_id])
            except Exception:  # one that somebody holds locked must not keep the others going
                log.exception("run_not_frozen", run=str(run_id), tenant=tenant)


ended_streams(
    "SELECT id AS stream_id, tenant_id, finished_at AS ended_at FROM runs_run "
    "WHERE state IN ('Completed', 'Failed', 'Cancelled')"
)
anchored_fact("epoch", "SELECT epoch FROM runs_fencingepoch")


def _run(row: Run, said: Recorded) -> Mapping[str, Any]:
    """A result that only the lost row held stays lost: then a CHECK refuses, and a person is asked."""
    started = row.started_at or (said.at if said.state not in ("Accepted", "Failed", "Cancelled") else None)
    deadline = row.deadline_at or (started and started + timedelta(minutes=row.limits["maxMinutes"]))
    return {
        "started_at": started,
        "deadline_at": deadline,
        "waiting_since": said.at if said.state == "WaitingForApproval" else None,
        "finished_at": said.at if said.state in RUN_TERMINAL else None,
        "failure_class": said.data.get("failureClass", "") if said.state == "Failed" else "",
        "reason": said.data.get("reason") or row.reason,
        "output_hash": said.data.get("outputHash", "") if said.state == "Completed" else "",
        "updated_at": said.at,
    }


def _step(row: Step, said: Recorded) -> Mapping[str, Any]:
    return {
        "next_dispatch_at": said.at if said.state == "Pending" else None,
        "finished_at": said.at if said.state in STEP_TERMINAL else None,
        "updated_at": said.at,
    }


def _attempt(row: Attempt, said: Recorded) -> Mapping[str, Any]:
    over = said.state in ATTEMPT_TERMINAL
    return {
        "settled_at": said.at if over else None,
        "resume_at": None if over else row.resume_at,
        "lease_id": None if said.state == "Parked" else row.lease_id,
        "failure_class": (said.data.get("failureClass") or "") if over else "",
        "outcome_hash": said.data.get("outcomeHash") or row.outcome_hash,
    }


def _lease(row: Lease, said: Recorded) -> Mapping[str, Any]:
    held = said.state in ("Held", "Released", "Settled")
    return {
        "acquired_at": (row.acquired_at or said.at) if held else row.acquired_at,
        "closed_at": said.at if said.state in LEASE_TERMINAL else None,
    }


repairs("journal", Run, _run)
repairs("journal", Step, _step)
repairs("journal", Attempt, _attempt)
repairs("journal", Lease, _lease)


@raises_epoch
def new_epoch(anchored: Mapping[str, int]) -> str:
    """Above that of the database and of every anchor: the same backup may be restored twice."""
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "UPDATE runs_fencingepoch SET epoch = greatest(epoch, %s) + 1 RETURNING epoch",
            [anchored.get("epoch", 0)],
        )
        return f"fencing tokens: epoch {cursor.fetchone()[0]}; every token from before is void"


def settle_open_leases(leave: Leave) -> int:
    """Every lease that the backup shows as open becomes Expired, and its attempt Uncertain."""
    with scanning() as cursor:
        cursor.execute(
            "SELECT id, tenant_id FROM runs_lease WHERE state IN ('Offered', 'Held') ORDER BY run_id, id"
        )
        found = cursor.fetchall()
    settled = 0
    for lease, tenant in found:
        try:
            settled += recover_lease(system(tenant, "Recovery"), lease_id=lease)
        except Exception as fault:  # whatever is wrong with it, the others are settled
            leave(f"lease:{lease} of {tenant} is still open: {why(fault)}")
    return settled


follows("releases", "open leases, made Uncertain for an operator", settle_open_leases)
