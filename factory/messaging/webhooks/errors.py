"""What is refused about webhooks and deliveries."""

from factory.kernel.errors import Conflict, TransitionRefused, Unprocessable


class TooManyWebhooks(Unprocessable):
    code = "too-many-webhooks"
    title = "The tenant has as many webhooks as it may have"


class WebhookDisabled(TransitionRefused):
    code = "webhook-disabled"
    title = "The webhook is disabled"


class NotSetAside(Conflict):
    """Only what was set aside after its tries waits for a person."""

    code = "not-set-aside"
    title = "The event was not set aside"
