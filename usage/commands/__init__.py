"""Every act on money that is a command of its own."""

from usage.commands.change_budget_amount import change_budget_amount
from usage.commands.create_budget import create_budget
from usage.commands.expire_reservation import expire_reservation
from usage.commands.next_month import change_recurrence, see_to_next_month
from usage.commands.publish_pricing_revision import establish_pricing, publish_pricing_revision
from usage.commands.settle_hold import date_holds, expire_hold, settle_hold

__all__ = [
    "change_budget_amount",
    "change_recurrence",
    "create_budget",
    "date_holds",
    "establish_pricing",
    "expire_hold",
    "expire_reservation",
    "publish_pricing_revision",
    "see_to_next_month",
    "settle_hold",
]
