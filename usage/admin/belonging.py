"""To which project what the evidence says of money belongs; a budget of the whole tenant to none."""

from typing import Any

from django.db.models import QuerySet

from factory.admin.belonging import project_of
from usage.models import Budget, Reservation, UsageRecord


@project_of("budget")
def of_a_budget(key: Any) -> QuerySet[Any]:
    return Budget.objects.filter(pk=key).values("project_id")


@project_of("reservation")
def of_a_reservation(key: Any) -> QuerySet[Any]:
    return Reservation.objects.filter(pk=key).values("project_id")


@project_of("usage-record")
def of_a_usage_record(key: Any) -> QuerySet[Any]:
    return UsageRecord.objects.filter(pk=key).values("project_id")
