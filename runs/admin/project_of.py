"""To which project what the evidence says of runs belongs."""

from typing import Any

from django.db.models import QuerySet

from factory.console.project_of import belongs, project_of_called
from runs.models import Attempt, Lease, Receipt, Run, RunTemplate, Step

belongs(Run, "run")
belongs(RunTemplate, "run-template")
belongs(Step, "step", to="run__project_id")
belongs(Attempt, "attempt", to="run__project_id")
belongs(Lease, "lease", to="run__project_id")


@project_of_called("receipt:")
def of_a_receipt(name: Any) -> QuerySet[Any]:
    """Return it for findings of a time when a receipt's id was known once in a tenant: its first run's."""
    return Receipt.objects.filter(receipt_id=name).order_by("recorded_at").values("run__project_id")[:1]
