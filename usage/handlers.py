"""What this app does about news from below."""

from approvals.states import POLICY_PUBLISHED
from factory.kernel.context import Context
from factory.messaging.relay.handlers import Handler, Received
from projects.states import STATE_CHANGED
from usage.commands import date_holds, establish_pricing

_NAME = "usage.establish_pricing"
_DATE_HOLDS = "usage.date_holds"


def establish_pricing_when_onboarded(ctx: Context, event: Received) -> None:
    """A tenant's first project brings the prices of the product's own tools."""
    if event.payload["fromState"] is None:
        establish_pricing.under(event.once(_NAME))(ctx)


def date_holds_by_the_new_policy(ctx: Context, event: Received) -> None:
    """Open holds end when the policy in force says, not when the one of their beginning did."""
    date_holds.under(event.once(_DATE_HOLDS))(ctx)


HANDLERS = (
    Handler(_NAME, STATE_CHANGED, establish_pricing_when_onboarded),
    Handler(_DATE_HOLDS, POLICY_PUBLISHED, date_holds_by_the_new_policy),
)
