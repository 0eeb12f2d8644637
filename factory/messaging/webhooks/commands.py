"""What admins do about webhooks. Secrets come in and never go out: whoever asked for one holds it already."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.conf import settings

from factory.kernel import clock
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.egress import target_of
from factory.kernel.errors import FieldError, InvalidInput, NotFound, VersionMismatch
from factory.kernel.events import topics as declared
from factory.kernel.locking import lock
from factory.kernel.models import WebhookSubscription
from factory.kernel.models.webhook import LONGEST_CONSUMER, LONGEST_DESCRIPTION, WebhookState
from factory.kernel.reasons import length_faults, reasoned
from factory.kernel.recording import audit, record
from factory.messaging.webhooks.errors import TooManyWebhooks, WebhookDisabled
from factory.messaging.webhooks.events import WebhookPinged
from factory.messaging.webhooks.signing import sealed

MOST = 100
"""A tenant's active webhooks: each event is offered to every one of them."""
BOTH_SECRETS = timedelta(hours=24)


@command("CreateWebhook")
def create_webhook(
    ctx: Context, *, url: str, topics: Sequence[str], consumer: str, description: str, secret: str
) -> str:
    """Subscribe an endpoint to the events of the caller's own scope: its project, or the whole tenant.

    From now on: what was told before is not sent. Guards: an admin of that scope; an https URL with a
    full host name; topics that exist. Emits: nothing. Errors: `InvalidInput`, `TooManyWebhooks`.
    """
    _check(url, topics, consumer, description)
    if WebhookSubscription.objects.filter(state=WebhookState.ACTIVE).count() >= MOST:
        raise TooManyWebhooks(f"There are {MOST} active webhooks already. Disable one first.")
    at = clock.now()
    row = WebhookSubscription(
        tenant_id=ctx.tenant_id,
        project_id=ctx.project_id,
        url=url,
        topics=sorted(set(topics)),
        consumer=consumer,
        description=description,
        secret=sealed(secret),
        created_by=ctx.actor.subject,
        created_at=at,
        updated_at=at,
    )
    record(ctx, row, "Created", detail={"host": target_of(url, _trusted()).host})
    return str(row.id)


@command("ChangeWebhook")
def change_webhook(
    ctx: Context,
    *,
    webhook_id: UUID,
    version: int,
    url: str,
    topics: Sequence[str],
    consumer: str,
    description: str,
) -> str:
    """Other events, or another place. What waits already goes to the new place.

    Guards: an admin of its scope; the version that was looked at. Emits: nothing. Errors: `NotFound`,
    `InvalidInput`, `VersionMismatch`.
    """
    row = _own(ctx, webhook_id)
    _check(url, topics, consumer, description)
    if row.version != version:
        raise VersionMismatch(f"The webhook is at version {row.version}. Read it again and decide anew.")
    row.change(
        at=clock.now(), url=url, topics=sorted(set(topics)), consumer=consumer, description=description
    )
    record(ctx, row, "Changed", detail={"host": target_of(url, _trusted()).host})
    return str(row.id)


@command("DisableWebhook")
def disable_webhook(ctx: Context, *, webhook_id: UUID, reason: str) -> str:
    """Send nothing more. What waits is kept, and goes out if the webhook is enabled again.

    Guards: an admin of its scope; a reason. Emits: nothing. Errors: `NotFound`, `InvalidInput`,
    `WebhookDisabled`.
    """
    _own(ctx, webhook_id)
    _disable(ctx, webhook_id, "DisableRequested", reasoned(reason, "Say why."))
    return str(webhook_id)


@command("CloseGoneWebhook")
def close_gone_webhook(ctx: Context, *, webhook_id: UUID) -> str:
    """The endpoint answered 410 Gone. Emits: nothing. Errors: `NotFound`, `WebhookDisabled`."""
    _disable(ctx, webhook_id, "EndpointGone", "The endpoint answered 410 Gone: it wants no more events.")
    return str(webhook_id)


def _disable(ctx: Context, webhook_id: UUID, cause: str, reason: str) -> None:
    row = _own(ctx, webhook_id)
    if row.state != WebhookState.ACTIVE:
        raise WebhookDisabled("The webhook is disabled already.")
    row.disable(at=clock.now(), reason=reason)
    record(ctx, row, cause)
    audit(ctx, "DisableWebhook", subject=f"webhook:{row.id}", reason=reason, stream=row.id)


@command("EnableWebhook")
def enable_webhook(ctx: Context, *, webhook_id: UUID) -> str:
    """Send again, beginning with what has waited. What was told meanwhile is not sent.

    Guards: an admin of its scope. Emits: nothing. Errors: `NotFound`, `TransitionRefused`.
    """
    row = _own(ctx, webhook_id)
    row.enable(at=clock.now())
    record(ctx, row, "EnableRequested")
    return str(row.id)


@command("RotateWebhookSecret")
def rotate_secret(ctx: Context, *, webhook_id: UUID, secret: str) -> str:
    """Sign with a new secret; for a day with the old one too, so that a receiver can change over.

    Guards: an admin of its scope. Emits: nothing. Errors: `NotFound`.
    """
    row = _own(ctx, webhook_id)
    at = clock.now()
    row.rotate(at=at, secret=sealed(secret), both_until=at + BOTH_SECRETS)
    record(ctx, row, "SecretRotated")
    return str(row.id)


@command("PingWebhook")
def ping_webhook(ctx: Context, *, webhook_id: UUID) -> str:
    """Send the endpoint one event that says nothing but that it arrived.

    Guards: an admin of its scope; the webhook active. Emits: `WebhookPinged`. Errors: `NotFound`,
    `WebhookDisabled`.
    """
    row = _own(ctx, webhook_id)
    if row.state != WebhookState.ACTIVE:
        raise WebhookDisabled("A disabled webhook is sent nothing. Enable it first.")
    row.updated_at = clock.now()
    told = WebhookPinged(webhook_id=row.id, tenant_id=ctx.tenant_id, requested_by=ctx.actor.subject)
    record(ctx, row, "PingRequested", told)
    return str(row.id)


def _own(ctx: Context, webhook_id: UUID) -> WebhookSubscription:
    """The subscription, locked; `NotFound` for one of another scope than the caller's."""
    missing = NotFound("There is no such webhook here.")
    row = lock(WebhookSubscription, webhook_id, missing=missing)
    if ctx.project_id is not None and row.project_id != ctx.project_id:
        raise missing
    return row


def _trusted() -> Sequence[str]:
    trusted: Sequence[str] = settings.FACTORY_WEBHOOKS_TRUSTED_HOSTS
    return trusted


def _check(url: str, topics: Sequence[str], consumer: str, description: str) -> None:
    faults = length_faults(description, "What it is for", "/description", most=LONGEST_DESCRIPTION)
    faults += length_faults(consumer, "The service's name", "/consumer", most=LONGEST_CONSUMER)
    try:
        target_of(url, _trusted())
    except ValueError as fault:
        faults.append(FieldError("/url", str(fault)))
    known = declared()
    for place, topic in enumerate(topics):
        if topic not in known:
            faults.append(FieldError(f"/topics/{place}", "There is no such event."))
    if faults:
        raise InvalidInput("The webhook is not valid.", errors=faults)
