"""What the apps above do to money, within their own commands.

Locks are taken in the order of the control plane: reservation, then budgets by their keys.
"""

from usage.operations.adding_up import add_up_again
from usage.operations.closing import release, settle
from usage.operations.dispatching import confirm_live
from usage.operations.extending import extend
from usage.operations.receiving import record_receipts
from usage.operations.reserving import reserve
from usage.pricing.receipts import ParsedReceipt, RefusedCall
from usage.pricing.receipts import read as read_receipt

__all__ = [
    "ParsedReceipt",
    "RefusedCall",
    "add_up_again",
    "confirm_live",
    "extend",
    "read_receipt",
    "record_receipts",
    "release",
    "reserve",
    "settle",
]
