"""The one event that is about a webhook."""

from uuid import UUID

from factory.events import Event, event
from factory.models.webhook import PINGED


@event(PINGED)
class WebhookPinged(Event):
    """Somebody wants to see an event arrive. Nothing else happened."""

    webhook_id: UUID
    tenant_id: str
    requested_by: str
