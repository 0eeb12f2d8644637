"""What this app does about news from below."""

from factory.context import Context
from factory.relay import Received, on
from projects.states import STATE_CHANGED
from usage.commands import establish_pricing

_NAME = "usage.establish_pricing"


@on(STATE_CHANGED, name=_NAME)
def establish_pricing_when_onboarded(ctx: Context, event: Received) -> None:
    """A tenant's first project brings the prices of the product's own tools."""
    if event.payload["fromState"] is None:
        establish_pricing.under(event.once(_NAME))(ctx)
