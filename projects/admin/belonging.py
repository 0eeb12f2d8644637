"""To which project what the evidence says of members belongs; who is one in the whole tenant, to none."""

from typing import Any

from django.db.models import QuerySet

from factory.admin.belonging import project_of
from projects.models import Delegation, Membership, Project


@project_of("project")
def of_itself(key: Any) -> QuerySet[Any]:
    return Project.objects.filter(pk=key).values("pk")


@project_of("membership")
def of_a_membership(key: Any) -> QuerySet[Any]:
    return Membership.objects.filter(pk=key).values("project_id")


@project_of("delegation")
def of_a_delegation(key: Any) -> QuerySet[Any]:
    return Delegation.objects.filter(pk=key).values("project_id")
