"""The one event that is about a webhook."""

from uuid import UUID

from factory.kernel.events import Event, event
from factory.kernel.models.webhook import PINGED


@event(PINGED)
class WebhookPinged(Event):
    """Somebody wants to see an event arrive. Nothing else happened."""

    webhook_id: UUID
    tenant_id: str
    requested_by: str
