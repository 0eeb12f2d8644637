"""Prices, as they were in force."""

from typing import ClassVar

from django.db import models
from django_fsm import FSMField

from factory.kernel.models.base import Journaled, in_check
from usage.pricing.quotes import PriceList
from usage.states import PRICING, PricingState


class PricingRevision(Journaled):
    """An immutable, numbered document of prices, in force from `valid_from` until a later one begins."""

    lifecycle = PRICING

    state = FSMField(default=PricingState.PUBLISHED.value, protected=True, editable=False)
    number = models.PositiveIntegerField()
    document = models.JSONField()
    document_hash = models.CharField(max_length=80)
    valid_from = models.DateTimeField()
    published_by = models.CharField(max_length=255)
    published_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant_id", "number"], name="usage_pricing_number_once"),
            models.CheckConstraint(condition=models.Q(number__gte=1), name="usage_pricing_number_from_1"),
            models.CheckConstraint(
                condition=in_check("state", list(PricingState)), name="usage_pricing_state"
            ),
            models.CheckConstraint(
                condition=models.Q(valid_from__gte=models.F("published_at")),
                name="usage_pricing_not_backdated",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant_id", "valid_from", "number"], name="usage_pricing_in_force")
        ]

    def __str__(self) -> str:
        return self.label

    @property
    def label(self) -> str:
        """Return what people call it: `p3`."""
        return f"p{self.number}"

    @property
    def prices(self) -> PriceList:
        return PriceList(self.document)
