"""What approvals do about events of the apps below."""

from approvals.commands import adopt_platform_policy
from factory.kernel.commanding import IdempotentReplay
from factory.kernel.context import Context
from factory.messaging.relay.handlers import Handler, Received
from projects.states import STATE_CHANGED

ADOPT = "approvals.adopt_platform_policy"


def adopt_policy_when_onboarded(ctx: Context, event: Received) -> None:
    """A tenant's first project brings it the platform's policy, unless it has one of its own."""
    if event.payload["fromState"] is not None:
        return
    try:
        adopt_platform_policy.under(event.once(ADOPT))(ctx)
    except IdempotentReplay:
        return


HANDLERS = (Handler(ADOPT, STATE_CHANGED, adopt_policy_when_onboarded),)
