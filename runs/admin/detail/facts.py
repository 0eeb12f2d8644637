"""The rows of one run, read once in one transaction, as its page needs them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

from approvals.selectors import ApprovalView, approvals_of_run
from factory.kernel.models import JournalEntry
from runs.models import Artifact, Attempt, Lease, Receipt, Resolution, Run, Step
from runs.models.lease import USED
from runs.selectors.node_progress import NodeProgress, progress_of_nodes
from runs.states import LeaseState, PageState, RunState, StepState
from usage.selectors import UsageView, usage_of_attempts, usage_of_run

WAITS_FOR_A_WORKER = str(PageState.WAITS_FOR_A_WORKER)
"""How a step stands that was offered to a worker, or decided about, and that nobody has begun with."""


@dataclass(frozen=True, slots=True)
class AttemptFacts:
    """An attempt with its leases and receipts, what people found out about it, and what it has cost."""

    step: Step
    attempt: Attempt
    leases: Sequence[Lease]
    receipts: Sequence[Receipt]
    artifacts: Sequence[Artifact]
    resolutions: Sequence[Resolution]
    usage: UsageView | None

    @property
    def took(self) -> float | None:
        """Seconds from its dispatch to its outcome."""
        settled = self.attempt.settled_at
        return (settled - self.attempt.dispatched_at).total_seconds() if settled else None


@dataclass(frozen=True)
class Facts:
    """The rows of one run; of its journal, only the run's own moves."""

    run: Run
    steps: list[Step]
    attempts: list[Attempt]
    leases: list[Lease]
    receipts: list[Receipt]
    artifacts: list[Artifact]
    resolutions: list[Resolution]
    approvals: list[ApprovalView]
    moves: list[JournalEntry]
    usage: UsageView
    costs: dict[UUID, UsageView]

    @cached_property
    def standings(self) -> list[NodeProgress]:
        """The nodes, each with its steps."""
        return progress_of_nodes(self.run.snapshot.content["workflow"], self.steps)

    @cached_property
    def _tries(self) -> dict[UUID, list[AttemptFacts]]:
        leases, receipts = _grouped(self.leases), _grouped(self.receipts)
        made, settled = _grouped(self.artifacts), _grouped(self.resolutions)
        steps = {step.id: step for step in self.steps}
        found: dict[UUID, list[AttemptFacts]] = {}
        for each in self.attempts:
            one = AttemptFacts(
                steps[each.step_id],
                each,
                leases=leases.get(each.id, ()),
                receipts=receipts.get(each.id, ()),
                artifacts=made.get(each.id, ()),
                resolutions=settled.get(each.id, ()),
                usage=self.costs.get(each.id),
            )
            found.setdefault(each.step_id, []).append(one)
        return found

    def tries(self, step: Step) -> list[AttemptFacts]:
        """The attempts at a step, oldest first."""
        return self._tries.get(step.id, [])

    def waits_for_a_worker(self, step: Step) -> bool:
        """Tell whether it was dispatched and nobody is at it: its offer stands, or it is parked and may go
        on."""
        if self.run.state not in (RunState.ACCEPTED, RunState.RUNNING) or step.attention or step.is_human:
            return False
        if step.state not in (StepState.DISPATCHED, StepState.RUNNING):
            return False
        leases = [lease for each in self.tries(step) for lease in each.leases]
        asked = any(view.is_pending and view.step_id == step.id for view in self.approvals)
        return not asked and not any(lease.state == LeaseState.HELD for lease in leases)


def _grouped(rows: Sequence[Any]) -> dict[UUID, list[Any]]:
    found: dict[UUID, list[Any]] = {}
    for row in rows:
        found.setdefault(row.attempt_id, []).append(row)
    return found


def read(run: Run) -> Facts:
    """Everything about a run that its page shows first."""
    return Facts(
        run=run,
        steps=list(Step.objects.filter(run_id=run.id).order_by("ordinal")),
        attempts=list(Attempt.objects.filter(run_id=run.id).order_by("number", "id")),
        leases=list(Lease.objects.filter(run_id=run.id).annotate(used_up=USED).order_by("fencing_token")),
        receipts=list(Receipt.objects.filter(run_id=run.id).order_by("occurred_at", "id")),
        artifacts=list(Artifact.objects.filter(run_id=run.id).order_by("id")),
        resolutions=list(Resolution.objects.filter(run_id=run.id).order_by("resolved_at", "id")),
        approvals=approvals_of_run(run.id),
        moves=list(JournalEntry.objects.filter(stream_id=run.id, entity_id=run.id).order_by("sequence")),
        usage=usage_of_run(run.id),
        costs=usage_of_attempts(run.id),
    )
