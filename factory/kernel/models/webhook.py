"""Webhooks: who asked to be told of what, and every event's way to each of them."""

from datetime import datetime
from typing import ClassVar, Final

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django_fsm import FSMField, transition

from factory.kernel.colours import Colour, ColouredChoices
from factory.kernel.lifecycle import Edge, Lifecycle
from factory.kernel.models.base import Journaled, TenantForeignKey, TenantModel, in_check

PINGED: Final = "event-delivery.webhooks.v1.webhook-pinged"
"""Goes to the one subscription that it is about, whatever that one wants."""
LONGEST_CONSUMER: Final = 64
LONGEST_DESCRIPTION: Final = 200


class WebhookState(ColouredChoices):
    ACTIVE = "Active", Colour.GOOD
    DISABLED = "Disabled", Colour.PLAIN


WEBHOOK: Final = Lifecycle(
    "webhook",
    (
        Edge("", "Active", causes=("Created",)),
        Edge("Active", "Active", causes=("Changed", "SecretRotated")),
        Edge("Active", "Active", causes=("PingRequested",), events=(PINGED,)),
        Edge("Active", "Disabled", causes=("DisableRequested", "EndpointGone")),
        Edge("Disabled", "Disabled", causes=("Changed", "SecretRotated")),
        Edge("Disabled", "Active", causes=("EnableRequested",)),
    ),
)


class WebhookSubscription(Journaled):
    """An endpoint that is told of a tenant's events, or of one project's.

    `topics` are the events that it wants; none means all. Secrets are sealed and never read back to
    anybody. `failures` to `last_error` say how the endpoint has been doing: the relay keeps them.
    """

    lifecycle: ClassVar[Lifecycle] = WEBHOOK

    project_id = models.UUIDField(null=True, editable=False)
    consumer = models.CharField(max_length=LONGEST_CONSUMER, blank=True, default="")
    description = models.CharField(max_length=LONGEST_DESCRIPTION, blank=True, default="")
    url = models.CharField(max_length=2048)
    topics = ArrayField(models.CharField(max_length=120), default=list, blank=True)
    state = FSMField(choices=WebhookState.choices, default=WebhookState.ACTIVE, protected=True)
    disabled_reason = models.TextField(blank=True, default="")
    secret = models.TextField()
    previous_secret = models.TextField(blank=True, default="")
    previous_until = models.DateTimeField(null=True)
    version = models.BigIntegerField(default=0)
    created_by = models.CharField(max_length=255)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    failures = models.IntegerField(default=0)
    resume_at = models.DateTimeField(null=True)
    succeeded_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True)
    last_error = models.TextField(blank=True, default="")

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=in_check("state", WebhookState.values), name="webhook_state_known"
            ),
            models.CheckConstraint(
                condition=models.Q(state="Active", disabled_reason="")
                | (models.Q(state="Disabled") & ~models.Q(disabled_reason="")),
                name="webhook_disabled_and_why",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["tenant_id"], condition=models.Q(state="Active"), name="webhook_of_tenant_active"
            )
        ]

    def __str__(self) -> str:
        return self.description or self.url

    def change(self, *, at: datetime, url: str, topics: list[str], consumer: str, description: str) -> None:
        """Change what it wants, and where; no state is left or entered."""
        self.url, self.topics, self.consumer, self.description = url, topics, consumer, description
        self.updated_at = at

    def rotate(self, *, at: datetime, secret: str, both_until: datetime) -> None:
        """A new secret; until `both_until` events are signed with the old one too."""
        self.previous_secret, self.previous_until = self.secret, both_until
        self.secret, self.updated_at = secret, at

    @transition(field=state, source=WebhookState.ACTIVE, target=WebhookState.DISABLED)
    def disable(self, *, at: datetime, reason: str) -> None:
        self.disabled_reason, self.updated_at = reason, at

    @transition(field=state, source=WebhookState.DISABLED, target=WebhookState.ACTIVE)
    def enable(self, *, at: datetime) -> None:
        self.disabled_reason, self.updated_at = "", at
        self.failures, self.resume_at = 0, None


class WebhookDelivery(TenantModel):
    """One event on its way to one subscription, written with the event.

    Within a subscription and a stream nothing goes past what has not been delivered. `claimed_until`
    is a relay's short right to send it; who sends twice sends the same id.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    subscription = TenantForeignKey("factory.WebhookSubscription", related_name="deliveries")
    event = TenantForeignKey("factory.OutboxEvent", related_name="+")
    stream_id = models.UUIDField()
    sequence = models.BigIntegerField()
    position = models.SmallIntegerField()
    topic = models.CharField(max_length=120)
    project_id = models.UUIDField(null=True)
    run_id = models.UUIDField(null=True)
    created_at = models.DateTimeField()

    attempts = models.SmallIntegerField(default=0)
    due_at = models.DateTimeField(null=True)
    claimed_until = models.DateTimeField(null=True)
    delivered_at = models.DateTimeField(null=True)
    set_aside_at = models.DateTimeField(null=True)
    last_status = models.SmallIntegerField(null=True)
    error = models.TextField(default="")

    class Meta:
        verbose_name_plural = "webhook deliveries"
        constraints: ClassVar = [
            models.UniqueConstraint("subscription", "event", name="webhook_delivery_once"),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["subscription", "stream_id", "sequence", "position"],
                condition=models.Q(delivered_at__isnull=True),
                name="webhook_undelivered",
            ),
            models.Index(
                fields=["tenant_id", "set_aside_at"],
                condition=models.Q(set_aside_at__isnull=False, delivered_at__isnull=True),
                name="webhook_set_aside",
            ),
            models.Index(fields=["tenant_id", "created_at"], name="webhook_delivery_by_time"),
            models.Index(fields=["event"], name="webhook_delivery_by_event"),
        ]

    def __str__(self) -> str:
        return f"{self.topic} {self.event_id}"
