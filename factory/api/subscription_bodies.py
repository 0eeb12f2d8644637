"""What goes over the wire about webhooks and consumers, and what is accepted."""

from typing import Any

from rest_framework import serializers

from factory.api.serializers import Choice, Identifier, Moment, StrictSerializer, Text, Whole
from factory.kernel.models.webhook import WebhookState
from factory.messaging.consumers import KINDS, NOT_SUBSCRIBED


class Topics(serializers.ListField):
    """Topics of events."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=Text(max_length=120), max_length=100, **options)


class WebhookBody(StrictSerializer):
    """A subscription. Its secret is shown when it is made, and never again."""

    webhookId = Identifier(source="id")
    projectId = Identifier(source="project_id", allow_null=True)
    url = Text(max_length=2048)
    topics = Topics()
    consumer = Text(max_length=64)
    description = Text(max_length=200)
    state = Choice(choices=WebhookState.choices)
    disabledReason = Text(source="disabled_reason", max_length=2000)
    previousSecretUntil = Moment(source="previous_until", allow_null=True)
    failures = serializers.IntegerField()
    lastSuccessAt = Moment(source="succeeded_at", allow_null=True)
    lastFailureAt = Moment(source="failed_at", allow_null=True)
    lastError = Text(source="last_error", max_length=500)
    version = Whole()
    createdBy = Text(source="created_by")
    createdAt = Moment(source="created_at")
    updatedAt = Moment(source="updated_at")


class WebhookWithSecretBody(WebhookBody):
    """A subscription with its new secret; null where the same request was answered before."""

    secret = Text(allow_null=True)


class NewWebhookBody(StrictSerializer):
    """Where events shall go, and which: no topics means all."""

    url = Text(max_length=2048)
    topics = Topics(required=False, default=list)
    consumer = Text(max_length=64, required=False, default="", allow_blank=True)
    description = Text(max_length=200, required=False, default="", allow_blank=True)


class ChangedWebhookBody(NewWebhookBody):
    """The subscription as it shall be, and the version on which that was decided."""

    version = Whole()


class WebhookReasonBody(StrictSerializer):
    """Why."""

    reason = Text(max_length=2000)


class ConsumerBody(StrictSerializer):
    """A consumer of events, and how far behind it is."""

    name = Text(max_length=2048)
    kind = Choice(choices=(*KINDS, NOT_SUBSCRIBED))
    webhookId = Identifier(source="webhook_id", allow_null=True)
    waiting = Whole()
    setAside = Whole(source="set_aside")
    oldestAt = Moment(source="oldest_at", allow_null=True)
    lagSeconds = serializers.FloatField(source="lag_seconds")
    topics = Topics()


class SetAsideBody(StrictSerializer):
    """An event that a consumer did not take."""

    eventId = Identifier(source="event_id")
    topic = Text(max_length=120)
    runId = Identifier(source="run_id", allow_null=True)
    kind = Choice(choices=KINDS)
    webhookId = Identifier(source="webhook_id", allow_null=True)
    consumer = Text(max_length=2048)
    attempts = Whole()
    reason = Text(max_length=500)
    setAsideAt = Moment(source="set_aside_at")


class RetryBody(StrictSerializer):
    """For which consumer the event is offered again or skipped, and why."""

    kind = Choice(choices=KINDS)
    webhookId = Identifier(source="webhook_id", required=False, allow_null=True, default=None)
    reason = Text(max_length=2000)
