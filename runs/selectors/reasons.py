"""What a run and its steps wait for, in words that people can read."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from functools import cached_property
from uuid import UUID

from approvals.selectors import pending_of_run
from factory.kernel.clock import now
from projects.selectors import project
from projects.states import ProjectState
from runs.models import Run, Step, TenantQuota, Worker
from runs.selectors.limits import why_money_stops
from runs.selectors.views import AttemptView
from runs.selectors.waiting import ALIVE, attempts_at_work
from runs.states import AttemptState, Attention, LeaseState, RunState, StepState


class Reasons:
    """The answers for one run; what needs a query is asked only if something really waits."""

    def __init__(
        self, run: Run, steps: Sequence[Step], attempts: Mapping[UUID, Sequence[AttemptView]]
    ) -> None:
        self._run, self._steps, self._attempts = run, steps, attempts

    @cached_property
    def _now(self) -> datetime:
        return now()

    @cached_property
    def _suspended(self) -> bool:
        its_project = project(self._run.project_id)
        return its_project is None or its_project.state != ProjectState.ACTIVE

    @cached_property
    def _live(self) -> list[Worker]:
        """Workers that could be given something of this tenant."""
        return list(
            Worker.objects.filter(
                pool__tenants__contains=[self._run.tenant_id],
                last_seen_at__gte=self._now - ALIVE,
                draining_at__isnull=True,
            )
        )

    def of_run(self) -> str:
        """One sentence for the whole run; empty when it goes on, or is over."""
        if self._run.frozen_at is not None:
            return "Frozen: the auditor found a violation, and a PlatformAdmin has to look at it."
        if self._run.state == RunState.WAITING:
            return "Waits for a person's approval."
        if self._run.state == RunState.ACCEPTED and pending_of_run(self._run.id):
            return "Waits for a person to approve what it may cost."
        if self._run.state == RunState.ACCEPTED and not self._steps:
            return "Its budget is about to be reserved."
        if self._run.state == RunState.CANCELLING:
            return "Waits for its workers to stop."
        reasons = [reason for step in self._steps if (reason := self.of_step(step))]
        return reasons[0] if reasons and self._run.state in (RunState.ACCEPTED, RunState.RUNNING) else ""

    def of_step(self, step: Step) -> str:
        """Return what a step waits for; empty when somebody is at it, or it is over."""
        if step.state == StepState.PENDING:
            return self._of_pending(step)
        if step.state == StepState.DISPATCHED:
            return "Offered to a worker that has not acquired it yet."
        if step.state != StepState.RUNNING:
            return ""
        if step.is_human:
            return "Waits for a person's answer."
        if step.attention == Attention.UNCERTAIN:
            return "Waits for an Operator: whether its effect happened is not known."
        return self._of_attempt(step)

    def _of_pending(self, step: Step) -> str:
        if self._run.frozen_at is not None:
            return "Frozen with its run."
        if self._run.state == RunState.WAITING:
            return "Waits while the run waits for an approval."
        if self._suspended:
            return "The project is suspended."
        if step.next_dispatch_at is not None and step.next_dispatch_at > self._now:
            return f"Back-off until {step.next_dispatch_at:%H:%M:%S} UTC."
        name = f"{step.agent_id}/{step.skill_id}"
        if not any(fnmatchcase(name, pattern) for worker in self._live for pattern in worker.capabilities):
            return f"No live worker can do {name}."
        if self._run.state == RunState.RUNNING and (stops := why_money_stops(self._run)):
            return f"{stops} Nothing more of it is dispatched."
        return self._quota or "Every worker that could do it is busy."

    @cached_property
    def _quota(self) -> str:
        """That the tenant is at its quota, in a sentence; empty when it is not."""
        most = TenantQuota.objects.values_list("open_attempts", flat=True).first()
        if most is None or attempts_at_work(self._run.tenant_id) < most:
            return ""
        return f"The tenant's quota of {most} open attempts is used up."

    def _of_attempt(self, step: Step) -> str:
        last = next(reversed(self._attempts.get(step.id, ())), None)
        if last is not None and last.state == AttemptState.PARKED:
            if self._run.state == RunState.WAITING:
                return "Waits for a person's approval."
            if self._suspended:
                return "The project is suspended."
            return f"Decided. {self._quota}" if self._quota else "Decided; waits for a worker."
        if last is not None and last.lease is not None and last.lease.state == LeaseState.OFFERED:
            return "Offered again to a worker that has not acquired it yet."
        return ""
