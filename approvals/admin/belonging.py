"""To which project what the evidence says of approvals belongs."""

from typing import Any

from django.db.models import QuerySet

from approvals.models import ApprovalRequest, Authorization, Waiver
from factory.admin.belonging import project_of


@project_of("approval")
def of_an_approval(key: Any) -> QuerySet[Any]:
    return ApprovalRequest.objects.filter(pk=key).values("project_id")


@project_of("waiver")
def of_a_waiver(key: Any) -> QuerySet[Any]:
    return Waiver.objects.filter(pk=key).values("project_id")


@project_of()
def of_a_use(key: Any) -> QuerySet[Any]:
    return Authorization.objects.filter(pk=key).values("approval__project_id")
