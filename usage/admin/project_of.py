"""To which project what the evidence says of money belongs; a budget of the whole tenant to none."""

from typing import Any

from django.db.models import QuerySet

from factory.console.project_of import belongs, project_of
from usage.models import Budget, LedgerEntry, Reservation, UsageRecord

belongs(Budget, "budget")
belongs(Reservation, "reservation")
belongs(UsageRecord, "usage-record")


@project_of()
def of_a_transaction(key: Any) -> QuerySet[Any]:
    """It stands in the budgets of one project, and in that of the tenant over them."""
    within = LedgerEntry.objects.filter(transaction_id=key, budget__project_id__isnull=False)
    return within.values("budget__project_id")[:1]
