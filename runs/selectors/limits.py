"""What a run may use, beside what it has used."""

from decimal import Decimal
from uuid import UUID

from runs.errors import RunNotFound
from runs.models import Run
from usage.selectors import usage_of_run


def over_its_limit(run: Run) -> bool:
    """Whether the run has used more than it may cost."""
    return usage_of_run(run.id).cost > Decimal(str(run.limits["maxCostUsd"]))


def project_of(run_id: UUID) -> UUID:
    """The project of a run of the tenant in scope. Raises `RunNotFound`."""
    found = Run.objects.filter(pk=run_id).values_list("project_id", flat=True).first()
    if found is None:
        raise RunNotFound(f"There is no run {run_id} here.")
    return UUID(str(found))
