"""To which project what the evidence says of runs belongs."""

from typing import Any

from django.db.models import QuerySet

from factory.admin.belonging import project_of, project_of_called
from runs.models import Attempt, Lease, Receipt, Run, RunTemplate, Step


@project_of("run")
def of_a_run(key: Any) -> QuerySet[Any]:
    return Run.objects.filter(pk=key).values("project_id")


@project_of("run-template")
def of_a_template(key: Any) -> QuerySet[Any]:
    return RunTemplate.objects.filter(pk=key).values("project_id")


@project_of("step")
def of_a_step(key: Any) -> QuerySet[Any]:
    return Step.objects.filter(pk=key).values("run__project_id")


@project_of("attempt")
def of_an_attempt(key: Any) -> QuerySet[Any]:
    return Attempt.objects.filter(pk=key).values("run__project_id")


@project_of("lease")
def of_a_lease(key: Any) -> QuerySet[Any]:
    return Lease.objects.filter(pk=key).values("run__project_id")


@project_of_called("receipt:")
def of_a_receipt(name: Any) -> QuerySet[Any]:
    """By the worker's or the provider's own word for it, which need not be an id of the house."""
    return Receipt.objects.filter(receipt_id=name).values("run__project_id")
