"""What goes over the wire about webhooks and consumers, and what is accepted."""

from typing import Any

from rest_framework import serializers

from factory.api.serializers import Identifier, StrictSerializer, TextField, TimeField, Whole, WordField
from factory.kernel.models.webhook import WebhookState
from factory.messaging.consumers import KINDS, NOT_SUBSCRIBED


class Topics(serializers.ListField):
    """Topics of events."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=TextField(max_length=120), max_length=100, **options)


class WebhookBody(StrictSerializer):
    """A subscription. Its secret is shown when it is made, and never again."""

    webhookId = Identifier(source="id")
    projectId = Identifier(source="project_id", allow_null=True)
    url = TextField(max_length=2048)
    topics = Topics()
    consumer = TextField(max_length=64)
    description = TextField(max_length=200)
    state = WordField(choices=WebhookState.choices)
    disabledReason = TextField(source="disabled_reason", max_length=2000)
    previousSecretUntil = TimeField(source="previous_until", allow_null=True)
    failures = serializers.IntegerField()
    lastSuccessAt = TimeField(source="succeeded_at", allow_null=True)
    lastFailureAt = TimeField(source="failed_at", allow_null=True)
    lastError = TextField(source="last_error", max_length=500)
    version = Whole()
    createdBy = TextField(source="created_by")
    createdAt = TimeField(source="created_at")
    updatedAt = TimeField(source="updated_at")


class WebhookWithSecretBody(WebhookBody):
    """A subscription with its new secret; null where the same request was answered before."""

    secret = TextField(allow_null=True)


class NewWebhookBody(StrictSerializer):
    """Name where events shall go, and which: no topics means all."""

    url = TextField(max_length=2048)
    topics = Topics(required=False, default=list)
    consumer = TextField(max_length=64, required=False, default="", allow_blank=True)
    description = TextField(max_length=200, required=False, default="", allow_blank=True)


class ChangedWebhookBody(NewWebhookBody):
    """The subscription as it shall be, and the version on which that was decided."""

    version = Whole()


class WebhookReasonBody(StrictSerializer):
    """Give the reason."""

    reason = TextField(max_length=2000)


class ConsumerBody(StrictSerializer):
    """A consumer of events, and how far behind it is."""

    name = TextField(max_length=2048)
    kind = WordField(choices=(*KINDS, NOT_SUBSCRIBED))
    webhookId = Identifier(source="webhook_id", allow_null=True)
    waiting = Whole()
    setAside = Whole(source="set_aside")
    oldestAt = TimeField(source="oldest_at", allow_null=True)
    lagSeconds = serializers.FloatField(source="lag_seconds")
    topics = Topics()


class SetAsideBody(StrictSerializer):
    """An event that a consumer did not take."""

    eventId = Identifier(source="event_id")
    topic = TextField(max_length=120)
    runId = Identifier(source="run_id", allow_null=True)
    kind = WordField(choices=KINDS)
    webhookId = Identifier(source="webhook_id", allow_null=True)
    consumer = TextField(max_length=2048)
    attempts = Whole()
    reason = TextField(max_length=500)
    setAsideAt = TimeField(source="set_aside_at")


class RetryBody(StrictSerializer):
    """For which consumer the event is offered again or skipped, and why."""

    kind = WordField(choices=KINDS)
    webhookId = Identifier(source="webhook_id", required=False, allow_null=True, default=None)
    reason = TextField(max_length=2000)
