"""From the outbox to webhooks: at least once, in order within a subscription and a stream.

Several relays share the work row by row: each claims what it sends for a minute. Nothing is sent inside a
transaction, and nothing waits for one endpoint but what goes to that endpoint.
"""

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.db import connection

from factory.kernel import clock
from factory.kernel.bulkhead import Bulkhead
from factory.kernel.context import system
from factory.kernel.errors import DomainError
from factory.kernel.hashing import storable
from factory.kernel.models import OutboxEvent, WebhookDelivery, WebhookSubscription
from factory.kernel.retries import delay_after
from factory.kernel.telemetry import meters
from factory.kernel.tenancy import bound, scanning
from factory.messaging.relay.destinations import envelope
from factory.messaging.webhooks.commands import close_gone_webhook
from factory.messaging.webhooks.sending import GONE, Sender, WebhookRequest, WebhookResponse
from factory.messaging.webhooks.signing import SecretUnreadable, opened

log = structlog.get_logger("factory.messaging.relay")

IN_FLIGHT = 100
"""Requests of one relay that are under way together; `may_send` says how many of them a tenant may have."""
PER_SUBSCRIPTION = 4
CLAIM_SECONDS = 60
"""Longer than a request may take, so that nobody else sends what is being sent."""
LONGEST_ASKED = 3600
WORRYING = 5
"""After so many failures in a row an endpoint is tried with one request at a time, and rests in between."""
LONGEST_REST = 300


@dataclass(frozen=True, slots=True)
class Claim:
    """A delivery that is ours to send."""

    tenant_id: str
    id: UUID
    webhook_id: UUID
    topic: str
    attempts: int


class Courier:
    """One relay's webhooks. `round()` is called again and again, always by the same thread."""

    def __init__(self, tenant_id: str | None = None) -> None:
        self._tenant_id = tenant_id
        self._sender = Sender()
        self._under_way: dict[Future[WebhookResponse], Claim] = {}

    def round(self, seconds: float = 0.2) -> int:
        """Send what is due, wait a moment for answers, note them; says how many came."""
        held = Counter(claim.tenant_id for claim in self._under_way.values())
        for claim, parcel in take(held, self._tenant_id):
            self._under_way[self._dispatch(parcel)] = claim
        if not self._under_way:
            return 0
        done, _ = wait(self._under_way, timeout=seconds, return_when=FIRST_COMPLETED)
        alone = Bulkhead("relay.webhook")
        for future in done:
            claim = self._under_way.pop(future)
            with alone.item(claim.id, claim.tenant_id):
                settle(claim, future.result())
        return len(done)

    @property
    def busy(self) -> bool:
        return bool(self._under_way)

    def close(self) -> None:
        """Leave what is under way claimed a little longer; whoever comes next sends it again."""
        self._sender.close()

    def _dispatch(self, parcel: "WebhookRequest | WebhookResponse") -> Future[WebhookResponse]:
        if isinstance(parcel, WebhookRequest):
            return self._sender.send(parcel)
        answered: Future[WebhookResponse] = Future()
        answered.set_result(parcel)
        return answered


_DUE = f"""
SELECT tenant_id, id FROM (
  SELECT first.*, row_number() OVER (PARTITION BY first.tenant_id ORDER BY place, first.created_at) AS turn
  FROM (
    SELECT d.*, row_number() OVER (
        PARTITION BY d.subscription_id ORDER BY d.claimed DESC, d.created_at) AS place
    FROM factory_webhooksubscription s CROSS JOIN LATERAL (
        SELECT DISTINCT ON (stream_id) tenant_id, id, subscription_id, created_at, due_at, set_aside_at,
               coalesce(claimed_until > clock_timestamp(), false) AS claimed
        FROM factory_webhookdelivery WHERE subscription_id = s.id AND delivered_at IS NULL
        ORDER BY stream_id, sequence, position
    ) AS d
    WHERE s.state = 'Active' AND (s.resume_at IS NULL OR s.resume_at <= clock_timestamp())
      AND d.set_aside_at IS NULL AND (d.claimed OR d.due_at IS NULL OR d.due_at <= clock_timestamp())
      AND (%(tenant)s::text IS NULL OR s.tenant_id = %(tenant)s) AND s.tenant_id <> ALL (%(full)s)
  ) AS first
  JOIN factory_webhooksubscription o ON o.id = first.subscription_id
  WHERE NOT claimed AND place <= CASE WHEN o.failures >= {WORRYING} THEN 1 ELSE {PER_SUBSCRIPTION} END
) AS due
ORDER BY turn, created_at LIMIT %(limit)s
"""
"""Tenants in turn, so that one with much to send hides nobody behind it."""

_CLAIM = f"""
UPDATE factory_webhookdelivery SET claimed_until = clock_timestamp() + interval '{CLAIM_SECONDS} seconds'
WHERE id = ANY(%s) AND delivered_at IS NULL AND set_aside_at IS NULL
  AND (claimed_until IS NULL OR claimed_until <= clock_timestamp()) RETURNING id
"""


def may_send(held: Mapping[str, int], tenant_id: str) -> bool:
    """Tell whether one more request of the tenant may be under way: as long as it has fewer than are free.

    So one tenant whose endpoints never answer takes half of all, two a third each, and so on: whoever comes
    next finds room.
    """
    return held.get(tenant_id, 0) < IN_FLIGHT - sum(held.values())


def take(
    held: Mapping[str, int], tenant_id: str | None = None
) -> Iterable[tuple[Claim, WebhookRequest | WebhookResponse]]:
    """Claim the first undelivered event of as many streams as there is room for.

    `held` says how many requests of each tenant are under way.
    """
    full = [tenant for tenant in held if not may_send(held, tenant)]
    held, room = dict(held), IN_FLIGHT - sum(held.values())
    with scanning() as cursor:
        cursor.execute(_DUE, {"tenant": tenant_id, "full": full, "limit": room})
        found: dict[str, list[UUID]] = {}
        for tenant, delivery in cursor.fetchall():
            if may_send(held, tenant):
                held[tenant] = held.get(tenant, 0) + 1
                found.setdefault(tenant, []).append(delivery)
    alone = Bulkhead("relay.webhook")
    for tenant, deliveries in found.items():
        claimed: list[tuple[Claim, WebhookRequest | WebhookResponse]] = []
        with alone.item(tenant, tenant):
            claimed = _claim(tenant, deliveries)
        yield from claimed


def _claim(tenant_id: str, ids: Sequence[UUID]) -> list[tuple[Claim, WebhookRequest | WebhookResponse]]:
    with bound(system(tenant_id, "Relay", channel="handler")):
        with connection.cursor() as cursor:
            cursor.execute(_CLAIM, [list(ids)])
            ours = [row[0] for row in cursor.fetchall()]
        rows = WebhookDelivery.objects.filter(pk__in=ours).select_related("subscription", "event")
        at = clock.now()
        return [
            (Claim(tenant_id, row.id, row.subscription_id, row.topic, row.attempts), _packed_or_told(row, at))
            for row in rows
        ]


def _packed_or_told(row: WebhookDelivery, at: datetime) -> WebhookRequest | WebhookResponse:
    """Return the request, or why there is none: an attempt that is not counted would be made for ever.

    It asks the database nothing, whose faults are no fault of the message.
    """
    try:
        return _packed(row, at)
    except (TypeError, ValueError) as fault:
        log.error("item_failed", job="relay.webhook", id=str(row.id), tenant=row.tenant_id, exc_info=fault)
        meters.item_failed("relay.webhook", row.tenant_id)
        return WebhookResponse(None, "The event could not be made into a message.")


def _packed(row: WebhookDelivery, at: datetime) -> WebhookRequest | WebhookResponse:
    subscription: WebhookSubscription = row.subscription
    event: OutboxEvent = row.event
    sealed = [subscription.secret]
    if subscription.previous_until is not None and subscription.previous_until > at:
        sealed.append(subscription.previous_secret)
    try:
        secrets = [opened(one) for one in sealed]
    except SecretUnreadable as fault:
        return WebhookResponse(None, str(fault))
    body = json.dumps(envelope(event), separators=(",", ":"), ensure_ascii=False).encode()
    trace = {"traceparent": event.traceparent} if event.traceparent else {}
    return WebhookRequest(subscription.url, str(event.id), body, secrets, trace)


def settle(claim: Claim, answer: WebhookResponse) -> None:
    """Note what came of a request: of the delivery, and of the endpoint."""
    ctx = system(claim.tenant_id, "Relay", channel="handler")
    with bound(ctx), connection.cursor() as cursor:
        if answer.error:
            _failed(cursor, claim, answer)
        else:
            cursor.execute(_DELIVERED, [answer.status, claim.id])
            cursor.execute(_WELL, [claim.webhook_id])
    if answer.status == GONE:
        try:
            close_gone_webhook(ctx, webhook_id=claim.webhook_id)
        except DomainError:
            return  # somebody disabled it first


_DELIVERED = """
UPDATE factory_webhookdelivery SET delivered_at = clock_timestamp(), claimed_until = NULL,
    attempts = attempts + 1, last_status = %s, error = '' WHERE id = %s AND delivered_at IS NULL
"""
_WELL = """
UPDATE factory_webhooksubscription SET failures = 0, resume_at = NULL, succeeded_at = clock_timestamp()
WHERE id = %s
"""
_FAILED = """
UPDATE factory_webhookdelivery SET attempts = attempts + 1, claimed_until = NULL, last_status = %(status)s,
    error = %(error)s, due_at = clock_timestamp() + make_interval(secs => %(delay)s),
    set_aside_at = CASE WHEN %(aside)s THEN clock_timestamp() END
WHERE id = %(id)s AND delivered_at IS NULL
"""
_ILL = f"""
UPDATE factory_webhooksubscription SET failed_at = clock_timestamp(), last_error = %(error)s,
    failures = failures + %(blamed)s, resume_at = CASE WHEN failures + %(blamed)s >= {WORRYING} THEN
        clock_timestamp() + make_interval(secs => least({LONGEST_REST},
            5 * power(2, least(failures + %(blamed)s - {WORRYING}, 10))) * %(jitter)s) END
WHERE id = %(webhook)s
"""


def _failed(cursor: Any, claim: Claim, answer: WebhookResponse) -> None:
    tries = claim.attempts + 1
    delay = delay_after(tries)
    jitter = random.uniform(0.8, 1.2)
    values = {
        "id": claim.id,
        "webhook": claim.webhook_id,
        "status": answer.status,
        "error": storable(answer.error, 500),
        "delay": max((delay or 0) * jitter, min(answer.retry_after, LONGEST_ASKED)),
        "aside": delay is None and answer.status != GONE,
        "blamed": 1 if answer.unreachable else 0,
        "jitter": jitter,
    }
    cursor.execute(_FAILED, values)
    cursor.execute(_ILL, values)
    log.warning(
        "delivery_failed", destination="webhook", webhook=str(claim.webhook_id), topic=claim.topic,
        attempts=tries, set_aside=values["aside"], status=answer.status,
    )  # fmt: skip
