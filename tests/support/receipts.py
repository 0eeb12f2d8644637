"""Receipts as workers report them, and the prices by which they cost something."""

from copy import deepcopy
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from factory.kernel.hashing import digest
from tests.support.proposals import DIFF
from usage.commands import publish_pricing_revision
from usage.pricing.quotes import default_document

if TYPE_CHECKING:
    from tests.support.running import House


def receipt(**changes: Any) -> dict[str, Any]:
    """A call of a priced tool."""
    usual = {"receiptId": str(uuid4()), "kind": "tool", "provider": "factory-tools", "name": "git-log"}
    usual |= {"quantities": {"calls": 1, "seconds": 2.5}, "occurredAt": datetime.now(UTC).isoformat()}
    return usual | {"details": {}} | changes


def costing(amount: str) -> dict[str, Any]:
    return receipt(cost={"amount": amount, "currency": "USD"}, quantities=None)


TOKENS = {"inputTokens": 12_400, "outputTokens": 850}


def thinking(name: str = "big-1", **changes: Any) -> dict[str, Any]:
    """A call of a model, with its tokens: of unknown cost until the model has a price."""
    usual = {"kind": "model", "provider": "gateway.example", "name": name, "quantities": TOKENS}
    return receipt(**usual | changes)


def price_models(house: "House", **costs: str) -> None:
    """Publish prices, besides those of the product's tools, by which `thinking` costs this much by model."""
    document = deepcopy(default_document())
    names = {
        name.replace("_", "-"): {
            "inputTokens": f"{round(Decimal(cost) / TOKENS['inputTokens'], 16):f}",
            "outputTokens": "0",
        }
        for name, cost in costs.items()
    }
    document["providers"]["gateway.example"] = {"prices": names}
    publish_pricing_revision(house.system, document=document)


def effect(approval_id: UUID | None, proposal: Any = DIFF, **details: Any) -> dict[str, Any]:
    return receipt(
        kind="effect",
        quantities=None,
        approvalId=str(approval_id) if approval_id else None,
        proposalHash=digest(proposal),
        details=details,
    )
