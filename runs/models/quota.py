"""How many attempts of a tenant may be in workers' hands at once."""

from typing import Any, ClassVar

from django.db import models

from factory.kernel.models.base import TenantModel


class TenantQuota(TenantModel):
    """The tenant's share of the workers; null, or no row at all, is no limit.

    The row is also what a dispatch locks, so that two at once cannot both be the last one.
    """

    tenant_id = models.CharField(primary_key=True, max_length=64, editable=False)
    open_attempts = models.PositiveIntegerField(null=True)
    reason = models.CharField(max_length=1000)
    changed_by = models.CharField(max_length=255)
    changed_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.CheckConstraint(condition=~models.Q(reason=""), name="quota_has_a_reason"),
        ]

    def __str__(self) -> str:
        return "no quota" if self.open_attempts is None else f"at most {self.open_attempts} open attempts"
