"""What the keeping of the evidence has to know about runs: which have ended, and how they come back."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import connections

from approvals.selectors import approvals_of_step
from approvals.states import ApprovalState
from factory.evidence.anchors.taking import anchored_fact
from factory.evidence.auditor import (
    CouldNotCheck,
    VerificationReport,
    Violation,
    audit_all,
    register_reaction,
)
from factory.evidence.journal_replay import Recorded, repairs, why
from factory.evidence.recovery import Leave, follows, raises_epoch
from factory.evidence.retention import ended_streams, keeps_its_key
from factory.kernel.bulkhead import Bulkhead
from factory.kernel.context import Context, system
from factory.kernel.hashing import digest
from factory.kernel.tenancy import reading, scanning
from runs.commands import add_up_usage, enforce_deadline, freeze_run, recover_lease, withdraw_from_frozen
from runs.engine import HUMAN
from runs.models import Attempt, CancellationIntent, Lease, Run, RunTemplate, Step
from runs.selectors import runs_of_subjects
from runs.states import (
    ATTEMPT_TERMINAL,
    LEASE_TERMINAL,
    RUN_TERMINAL,
    STEP_TERMINAL,
    LeaseState,
    TemplateState,
)
from runs.subjects.action import answer_of


def freeze_runs_of_violations(report: VerificationReport) -> None:
    """Each run that a violation is about stands still until a PlatformAdmin has looked at it.

    What was offered of it is taken back, each offer by itself: a chain that is damaged keeps no run from
    being frozen.
    """
    by_tenant: dict[str, list[Violation]] = {}
    for violation in report.violations:
        if violation.tenant_id:
            by_tenant.setdefault(violation.tenant_id, []).append(violation)
    tenants, runs = Bulkhead("freeze"), Bulkhead("freeze")
    for tenant, found in by_tenant.items():
        with tenants.item(tenant, tenant):
            for run_id, findings in sorted(_by_run(tenant, found).items()):
                with runs.item(run_id, tenant):
                    freeze_run(system(tenant, "Auditor"), run_id=run_id, findings=findings)
                    _take_offers_back(tenant, run_id)


def _take_offers_back(tenant: str, run_id: UUID) -> None:
    as_system, alone = system(tenant, "Auditor"), Bulkhead("freeze")
    with reading(as_system):
        offered = Lease.objects.filter(run_id=run_id, state=LeaseState.OFFERED)
        offers = list(offered.values_list("id", flat=True))
    for lease_id in offers:
        with alone.item(lease_id, tenant):
            withdraw_from_frozen(as_system, lease_id=lease_id)


def _by_run(tenant: str, found: Sequence[Violation]) -> dict[UUID, list[str]]:
    """The findings about each run that a violation is about."""
    with reading(system(tenant, "Auditor")):
        runs = runs_of_subjects(v.subject for v in found)
    findings_by_run: dict[UUID, list[str]] = {}
    for v in found:
        if v.subject in runs:
            findings_by_run.setdefault(runs[v.subject], []).append(f"{v.code} {v.subject}")
    return findings_by_run


def _run(row: Run, said: Recorded) -> Mapping[str, Any]:
    data, deadline = said.data, said.data.get("deadlineAt")
    begun = deadline or row.deadline_at
    output_hash = data.get("outputHash", "") if said.state == "Completed" else ""
    return {
        "budget_reservation_id": data.get("reservationId") or row.budget_reservation_id,
        "started_at": data.get("startedAt") or row.started_at,
        "deadline_at": begun,
        "clock_since": (data.get("clockSince") or said.at) if begun else None,
        "clock_because": data.get("clockBecause", ["approval"] if said.state == "WaitingForApproval" else []),
        "waiting_since": said.at if said.state == "WaitingForApproval" else None,
        "finished_at": said.at if said.state in RUN_TERMINAL else None,
        "failure_class": data.get("failureClass", "") if said.state == "Failed" else "",
        "reason": _stopped(row, said) or data.get("reason") or row.reason,
        "output_hash": output_hash,
        "output": _result(row, output_hash) if output_hash else row.output,
        "updated_at": said.at,
    }


def _stopped(row: Run, said: Recorded) -> str:
    """Return why a run was to be cancelled, which stands in the intent; empty of any other run."""
    if said.state not in ("Cancelling", "Cancelled"):
        return ""
    intent = CancellationIntent.objects.filter(run_id=row.id).first()
    return intent.reason if intent else ""


def _result(row: Run, output_hash: str) -> Any:
    """The result is that of a step, known by its hash. One that only the lost row held stays lost."""
    outputs = (step.output for step in Step.objects.filter(run_id=row.id).exclude(output=None))
    return next((each for each in outputs if digest(each) == output_hash), row.output)


def _step(row: Step, said: Recorded) -> Mapping[str, Any]:
    """Return the columns of a step. What it made, and why it failed, stand in its last attempt's row too."""
    data = said.data
    locked = Attempt.objects.filter(step_id=row.id).order_by("-number").first()
    failed = said.state == "Failed" or bool(data.get("attention"))
    return {
        "next_dispatch_at": (data.get("dueAt") or said.at) if said.state == "Pending" else None,
        "attention": data.get("attention", ""),
        "failure_class": data.get("failureClass", ""),
        "reason": locked.reason if locked and failed else row.reason,
        "output": _made(row, locked) if said.state == "Succeeded" else row.output,
        "finished_at": said.at if said.state in STEP_TERMINAL else None,
        "updated_at": said.at,
    }


def _made(row: Step, locked: Attempt | None) -> Any:
    """A person's yes is the output of a human step."""
    if not row.is_human:
        return locked.output if locked and row.output is None else row.output
    given = (view for view in approvals_of_step(row.id) if view.state == ApprovalState.APPROVED)
    return next((answer_of(view) for view in given), row.output)


def _attempt(row: Attempt, said: Recorded) -> Mapping[str, Any]:
    data, over = said.data, said.state in ATTEMPT_TERMINAL
    return {
        "lease_id": None if said.state == "Parked" else data.get("leaseId") or row.lease_id,
        "held_at": data.get("heldAt") or row.held_at,
        "approval_id": data.get("approvalId") or row.approval_id,
        "resume_at": data.get("resumeAt") if said.state == "Parked" else None,
        "settled_at": said.at if over else None,
        "failure_class": (data.get("failureClass") or "") if over else "",
        "outcome_hash": data.get("outcomeHash") or row.outcome_hash,
    }


def _lease(row: Lease, said: Recorded) -> Mapping[str, Any]:
    return {
        "acquired_at": said.reached("Held"),
        "closed_at": said.at if said.state in LEASE_TERMINAL else None,
    }


def _template(row: RunTemplate, said: Recorded) -> Mapping[str, Any]:
    if said.state != TemplateState.RETIRED:
        return {"retired_at": None, "retired_by": "", "retire_reason": ""}
    by, because = said.data.get("changedBy") or said.actor, said.data.get("reason") or ""
    return {"retired_at": said.at, "retired_by": by, "retire_reason": because}


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
        rows = cursor.fetchall()
    settled, alone = 0, Bulkhead("recover")
    for lease, tenant in rows:

        def tell(fault: Exception, told: str = f"lease:{lease} of {tenant} is still open") -> None:
            leave(f"{told}: {why(fault)}")

        with alone.item(lease, tenant, tell=tell):
            settled += recover_lease(system(tenant, "Recovery"), lease_id=lease)
    return settled


def _found_by(leave: Leave, codes: Sequence[str], wrong: str, mend: Callable[[Context, UUID], object]) -> int:
    """Mend each run that the auditor finds by these rules; what cannot be mended is left, and said."""
    try:
        frozen = {(v.tenant_id, UUID(v.subject.removeprefix("run:"))) for v in audit_all(codes)}
    except CouldNotCheck as fault:
        leave(f"it could not be checked which runs have {wrong}: {fault}")
        return 0
    alone = Bulkhead("recover")
    for tenant, run in sorted(frozen):

        def tell(fault: Exception, subject: str = f"run:{run} of {tenant}") -> None:
            leave(f"{subject} has {wrong}: {why(fault)}")

        with alone.item(run, tenant, tell=tell):  # such as a run that is lost
            mend(system(tenant, "Recovery"), run)
    return alone.counts.repaired


CLOCKS = ("B18",)


def set_clocks_right(leave: Leave) -> int:
    """Let the clock of each run run, or stand still, by what the rows say that came back."""
    wrong = "a clock that stands still without a reason, or runs against one"
    return _found_by(leave, CLOCKS, wrong, lambda ctx, run: enforce_deadline(ctx, run_id=run))


SUMS = ("E4e", "E4f")


def recount_usage(leave: Leave) -> int:
    """Add up anew each run's usage whose sums the auditor finds to be those of other records or pins."""
    wrong = "sums of usage that are not those of its records, or of other pins"
    return _found_by(leave, SUMS, wrong, lambda ctx, run: add_up_usage(ctx, run_id=run))


def register() -> None:
    """Register what a restore of this app needs: how its rows come back."""
    register_reaction(freeze_runs_of_violations)
    ended_streams(
        "SELECT id AS stream_id, tenant_id, finished_at AS ended_at FROM runs_run "
        "WHERE state IN ('Completed', 'Failed', 'Cancelled')"
    )
    keeps_its_key(
        "SubmitRun"
    )  # a run is never removed: who removes one removes the record of its key with it
    anchored_fact("epoch", "SELECT epoch FROM runs_fencingepoch")
    repairs("journal", RunTemplate, _template)
    repairs("journal", Lease, _lease)
    repairs(
        "journal",
        Attempt,
        _attempt,
        behind="(e.state = 'Open' AND (j.detail->>'leaseId')::uuid <> e.lease_id) "
        "OR (e.state = 'Parked' AND j.detail ? 'resumeAt' AND e.resume_at IS NULL)",
    )
    repairs(
        "journal",
        Step,
        _step,
        behind=f"e.kind = '{HUMAN}' AND e.state = 'Succeeded' AND e.output IS NULL",
    )
    repairs("journal", Run, _run)
    raises_epoch(new_epoch)
    follows("releases", "open leases, made Uncertain for an operator", settle_open_leases)
    follows("releases", "runs whose clock was set right", set_clocks_right)
    follows("releases", "runs whose usage was added up anew", recount_usage)
