"""The platform's tables: pools and workers belong to no tenant; a pool says which tenants it serves."""

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from factory.kernel.models.base import uuid_key


class WorkerPool(models.Model):
    """Workers that are alike. A tenant that is not listed is never worked for by them."""

    name = models.CharField(primary_key=True, max_length=64)
    tenants = ArrayField(models.CharField(max_length=64), default=list)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class Worker(models.Model):
    """A process that registered. What it may be given is computed from its open leases, never counted.

    `instance_id` is the youngest process under this name; an older one is told to stop. `drained_by` is the
    person who drained it from outside: that drain outlives a restart of the process, and a person ends it.
    """

    id = uuid_key()
    pool = models.ForeignKey(WorkerPool, on_delete=models.PROTECT, related_name="workers")
    name = models.CharField(max_length=64)
    subject = models.CharField(max_length=255)
    instance_id = models.UUIDField()
    capabilities = ArrayField(models.CharField(max_length=130))
    max_concurrency = models.PositiveSmallIntegerField()
    version = models.CharField(max_length=64, blank=True)
    registered_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    draining_at = models.DateTimeField(null=True)
    drained_by = models.CharField(max_length=255, blank=True)
    last_tenant = models.CharField(max_length=64, blank=True)

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint("pool", "name", name="worker_name_once_a_pool"),
            models.CheckConstraint(condition=models.Q(max_concurrency__gte=1), name="worker_can_work"),
            models.CheckConstraint(
                condition=models.Q(drained_by="") | models.Q(draining_at__isnull=False),
                name="worker_drained_by_somebody",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pool_id}/{self.name}"


class FencingEpoch(models.Model):
    """Raised after every restore, so that no token from before it is ever good again. One row."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    epoch = models.PositiveIntegerField()

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.CheckConstraint(condition=models.Q(id=1), name="fencing_one_epoch")
        ]

    def __str__(self) -> str:
        return str(self.epoch)
