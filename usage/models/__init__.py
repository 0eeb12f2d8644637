"""The tables of money."""

from usage.models.budget import Budget, LedgerEntry
from usage.models.pricing import PricingRevision
from usage.models.reservation import Reservation, ReservationHold
from usage.models.usage_record import UsageRecord
from usage.models.usage_sum import UsageSum

__all__ = [
    "Budget",
    "LedgerEntry",
    "PricingRevision",
    "Reservation",
    "ReservationHold",
    "UsageRecord",
    "UsageSum",
]
