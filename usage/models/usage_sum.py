"""Usage added up, so that a month is read without reading every call."""

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from factory.kernel.models.base import TenantForeignKey, TenantModel, in_check, uuid_key
from usage.pricing.money import ZERO
from usage.states import ReceiptKind


def _sum_field() -> "models.DecimalField[Any, Any]":
    """Wide enough for whatever a worker claims: a sum that does not fit would refuse a receipt."""
    return models.DecimalField(max_digits=38, decimal_places=6, default=ZERO)


class UsageSum(TenantModel):
    """Sum what one run used of one model or tool on one day (UTC, of `priced_at`) by its usage records.

    Written with them, in the same transaction: it is never behind. It is kept by run, because all receipts
    of a run are taken under the lock of its reservation: no two runs ever wait for each other's sums. `cost`
    is what is known, `estimated` that part of it which no statement has confirmed; tokens are those that the
    receipts told of. The workflow and the release are those that the run is pinned to.
    """

    id = uuid_key()
    project = TenantForeignKey("projects.Project", related_name="+")
    run_id = models.UUIDField()
    workflow_id = models.CharField(max_length=63)
    release_id = models.UUIDField()
    day = models.DateField()
    kind = models.CharField(max_length=16)
    provider = models.CharField(max_length=200)
    name = models.CharField(max_length=200)
    calls = models.BigIntegerField(default=0)
    uncertain = models.BigIntegerField(default=0)
    cost = _sum_field()
    estimated = _sum_field()
    input_tokens = _sum_field()
    output_tokens = _sum_field()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant_id", "run_id", "day", "kind", "provider", "name"], name="usage_sum_once"
            ),
            models.CheckConstraint(condition=in_check("kind", list(ReceiptKind)), name="usage_sum_kind"),
            models.CheckConstraint(
                condition=Q(calls__gte=1, uncertain__gte=0, cost__gte=0, estimated__gte=0),
                name="usage_sum_figures",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["tenant_id", "project", "day"],
                include=[
                    "workflow_id", "release_id", "kind", "provider", "name", "calls", "uncertain",
                    "cost", "estimated", "input_tokens", "output_tokens",
                ],
                name="usage_sum_by_project",
            ),
            models.Index(
                fields=["tenant_id", "day"],
                include=[
                    "project", "workflow_id", "release_id", "kind", "provider", "name", "calls", "uncertain",
                    "cost", "estimated", "input_tokens", "output_tokens",
                ],
                name="usage_sum_by_day",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.provider}/{self.name} on {self.day}"
