"""What a run may use, beside what it has used."""

from decimal import Decimal
from uuid import UUID

from runs.errors import RunNotFound
from runs.models import Run
from usage.selectors import set_aside_for, usage_of_run


def over_its_limit(run: Run) -> bool:
    """Whether the run has used more than it may cost."""
    used = usage_of_run(run.id).cost
    return used > Decimal(str(run.limits["maxCostUsd"])) and used > limit_of(run)


def limit_of(run: Run) -> Decimal:
    """What the run may cost in all: what was pinned, and whatever was approved and set aside since."""
    return max(Decimal(str(run.limits["maxCostUsd"])), set_aside_for(run.id) or Decimal(0))


def project_of(run_id: UUID) -> UUID:
    """The project of a run of the tenant in scope. Raises `RunNotFound`."""
    found = Run.objects.filter(pk=run_id).values_list("project_id", flat=True).first()
    if found is None:
        raise RunNotFound(f"There is no run {run_id} here.")
    return UUID(str(found))
