"""To which project what the evidence says of money belongs; a budget of the whole tenant to none."""

from typing import Any

from django.db.models import QuerySet

from factory.admin.belonging import project_of
from usage.models import Budget, LedgerEntry, Reservation, UsageRecord


@project_of("budget")
def of_a_budget(key: Any) -> QuerySet[Any]:
    return Budget.objects.filter(pk=key).values("project_id")


@project_of("reservation")
def of_a_reservation(key: Any) -> QuerySet[Any]:
    return Reservation.objects.filter(pk=key).values("project_id")


@project_of("usage-record")
def of_a_usage_record(key: Any) -> QuerySet[Any]:
    return UsageRecord.objects.filter(pk=key).values("project_id")


@project_of()
def of_a_transaction(key: Any) -> QuerySet[Any]:
    """It stands in the budgets of one project, and in that of the tenant over them."""
    within = LedgerEntry.objects.filter(transaction_id=key, budget__project_id__isnull=False)
    return within.values("budget__project_id")[:1]
