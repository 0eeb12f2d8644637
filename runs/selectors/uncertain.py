"""Steps of which nobody knows how they ended, with everything that an Operator needs to find out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from approvals.selectors import ApprovalView, AuthorizationView, approvals_by_id, authorizations_of_attempts
from factory.kernel.context import Context
from runs.models import Attempt, Lease, Receipt, Step
from runs.states import AttemptState, Attention

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class UncertainAttempt:
    """An uncertain attempt: who had it when, what was allowed to it, and what it left as evidence."""

    step: Step
    attempt: Attempt
    leases: Sequence[Lease]
    authorizations: Sequence[AuthorizationView]
    approvals: Sequence[ApprovalView]
    receipts: Sequence[Receipt]

    @property
    def since(self) -> datetime:
        return self.step.updated_at


def uncertain_steps(ctx: Context) -> QuerySet[Step]:
    """The steps of the caller's scope that an Operator has to settle."""
    rows: QuerySet[Step] = Step.objects.filter(attention=Attention.UNCERTAIN).select_related("run")
    return rows if ctx.project_id is None else rows.filter(run__project_id=ctx.project_id)


def uncertain_attempts(steps: Sequence[Step]) -> list[UncertainAttempt]:
    """Return the same steps with their evidence, read with a few queries for all of them."""
    attempts = _last(Attempt.objects.filter(step__in=steps, state=AttemptState.UNCERTAIN).order_by("number"))
    ids = [one.id for one in attempts.values()]
    leases = _grouped(Lease.objects.filter(attempt_id__in=ids).order_by("fencing_token"))
    receipts = _grouped(Receipt.objects.filter(attempt_id__in=ids).order_by("occurred_at", "id"))
    taken: dict[UUID, list[AuthorizationView]] = {}
    for view in authorizations_of_attempts(ids):
        taken.setdefault(view.attempt_id, []).append(view)
    asked = approvals_by_id({view.approval_id for own in taken.values() for view in own})
    return [
        UncertainAttempt(
            step=step,
            attempt=attempts[step.id],
            leases=leases.get(attempts[step.id].id, ()),
            authorizations=taken.get(attempts[step.id].id, ()),
            approvals=[asked[view.approval_id] for view in taken.get(attempts[step.id].id, ())],
            receipts=receipts.get(attempts[step.id].id, ()),
        )
        for step in steps
        if step.id in attempts
    ]


def _last(rows: Iterable[Attempt]) -> dict[UUID, Attempt]:
    return {row.step_id: row for row in rows}


def _grouped(rows: Iterable[M]) -> dict[UUID, list[M]]:
    by_attempt: dict[UUID, list[M]] = {}
    for row in rows:
        by_attempt.setdefault(row.attempt_id, []).append(row)  # type: ignore[attr-defined]  # leases and receipts
    return by_attempt
