"""What a run may use, beside what it has used."""

from decimal import Decimal

from runs.models import Run
from usage.selectors import usage_of_run


def over_its_limit(run: Run) -> bool:
    """Whether the run has used more than it may cost."""
    return usage_of_run(run.id).cost > Decimal(str(run.limits["maxCostUsd"]))
