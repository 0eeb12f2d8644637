"""Who is told of a tenant's events, how far behind each is, and what was set aside for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from factory.kernel import clock
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import FieldError, InsufficientRole, InvalidInput, NotFound
from factory.kernel.events import known_consumers
from factory.kernel.hints import OUTBOX, wake
from factory.kernel.locking import lock
from factory.kernel.models import OutboxEvent, WebhookDelivery, WebhookSubscription
from factory.kernel.reasons import reason_faults
from factory.kernel.recording import audit
from factory.messaging.webhooks.errors import NotSetAside

HANDLERS, STREAMS, WEBHOOK, NOT_SUBSCRIBED = "handlers", "streams", "webhook", "not-subscribed"
PLATFORM = "PlatformAdmin"
PREFIXES = {HANDLERS: "handle", STREAMS: "stream"}
DONE = {HANDLERS: "handled_at", STREAMS: "streamed_at"}


@dataclass(frozen=True, slots=True)
class Consumer:
    """One consumer: `oldest_at` is when the oldest event was told that it has not got yet."""

    name: str
    kind: str
    webhook_id: UUID | None = None
    waiting: int = 0
    set_aside: int = 0
    oldest_at: datetime | None = None
    lag_seconds: float = 0.0
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SetAside:
    """An event that a consumer did not take, however often it was offered: a person decides."""

    event_id: UUID
    topic: str
    run_id: UUID | None
    stream_id: UUID
    kind: str
    webhook_id: UUID | None
    consumer: str
    attempts: int
    reason: str
    set_aside_at: datetime


def consumers(ctx: Context) -> list[Consumer]:
    """Those inside, each webhook, and known services that have not subscribed; in a reading transaction."""
    at = clock.now()
    found = [_inside(ctx, kind, at) for kind in (HANDLERS, STREAMS)]
    hooks = webhooks_of(ctx).order_by("created_at")
    found += [_webhook(row, at) for row in hooks]
    subscribed = {row.consumer for row in hooks}
    known = known_consumers().items()
    return found + [
        Consumer(name, NOT_SUBSCRIBED, topics=wanted) for name, wanted in known if name not in subscribed
    ]


def webhooks_of(ctx: Context) -> "QuerySet[WebhookSubscription]":
    """The subscriptions of the caller's project, or all of the tenant."""
    rows: QuerySet[WebhookSubscription] = WebhookSubscription.objects.all()
    return rows if ctx.project_id is None else rows.filter(project_id=ctx.project_id)


_WAITING = """
SELECT count(*), count(*) FILTER (WHERE {aside} IS NOT NULL), min({told})
FROM {table} WHERE {done} IS NULL AND {where}
"""


def _inside(ctx: Context, kind: str, at: datetime) -> Consumer:
    where = "project_id = %s" if ctx.project_id else "tenant_id = %s"
    sql = _WAITING.format(
        aside=f"{PREFIXES[kind]}_set_aside_at", told="occurred_at", table="factory_outboxevent",
        done=DONE[kind], where=where,
    )  # fmt: skip
    return _counted(Consumer(kind, kind), sql, str(ctx.project_id or ctx.tenant_id), at)


def _webhook(row: WebhookSubscription, at: datetime) -> Consumer:
    name = row.consumer or row.description or row.url
    sql = _WAITING.format(
        aside="set_aside_at", told="created_at", table="factory_webhookdelivery", done="delivered_at",
        where="subscription_id = %s",
    )  # fmt: skip
    return _counted(Consumer(name, WEBHOOK, row.id, topics=tuple(row.topics)), sql, row.id, at)


def _counted(of: Consumer, sql: str, key: Any, at: datetime) -> Consumer:
    with connection.cursor() as cursor:
        cursor.execute(sql, [key])
        waiting, aside, oldest = cursor.fetchone()
    lag = max(0.0, (at - oldest).total_seconds()) if oldest else 0.0
    return Consumer(of.name, of.kind, of.webhook_id, waiting, aside, oldest, round(lag, 3), of.topics)


def set_aside(ctx: Context, limit: int = 200) -> list[SetAside]:
    """Return what waits for a person, oldest first; in a reading transaction."""
    found: list[SetAside] = []
    for kind, prefix in PREFIXES.items():
        rows = _own(ctx, OutboxEvent).filter(
            **{f"{prefix}_set_aside_at__isnull": False, f"{DONE[kind]}__isnull": True}
        )
        found += [_of_event(row, kind, prefix) for row in rows.order_by(f"{prefix}_set_aside_at")[:limit]]
    deliveries = _own(ctx, WebhookDelivery).filter(set_aside_at__isnull=False, delivered_at__isnull=True)
    if ctx.project_id is not None:
        deliveries = deliveries.filter(subscription__project_id=ctx.project_id)
    for row in deliveries.select_related("subscription").order_by("set_aside_at")[:limit]:
        found.append(_of_delivery(row))
    return sorted(found, key=lambda each: each.set_aside_at)[:limit]


def _own(ctx: Context, model: Any) -> Any:
    rows = model.objects.all()
    return rows if ctx.project_id is None else rows.filter(project_id=ctx.project_id)


def _of_event(row: OutboxEvent, kind: str, prefix: str) -> SetAside:
    return SetAside(
        row.id, row.topic, row.run_id, row.stream_id, kind, None, kind,
        getattr(row, f"{prefix}_attempts"), getattr(row, f"{prefix}_error"),
        getattr(row, f"{prefix}_set_aside_at"),
    )  # fmt: skip


def _of_delivery(row: WebhookDelivery) -> SetAside:
    of = row.subscription
    assert row.set_aside_at is not None
    return SetAside(
        row.event_id, row.topic, row.run_id, row.stream_id, WEBHOOK, of.id, of.consumer or of.url,
        row.attempts, row.error, row.set_aside_at,
    )  # fmt: skip


INSIDE = {
    HANDLERS: "What the product itself did not do about an event stays undone",
    STREAMS: "What is kept from the streams is kept from everybody who reads them",
}
KINDS: Sequence[str] = (HANDLERS, STREAMS, WEBHOOK)

_AGAIN = """
UPDATE {table} SET {prefix}set_aside_at = NULL, {prefix}due_at = NULL, {prefix}attempts = 0 WHERE id = %s
"""


@command("RetryDelivery", strict=True)
def retry_delivery(
    ctx: Context, *, event_id: UUID, kind: str, webhook_id: UUID | None = None, reason: str
) -> str:
    """Offer a set-aside event to its consumer again, with all its tries before it.

    Guards: an operator of the event's project; a reason. Emits: nothing. Errors: `NotFound`,
    `InvalidInput`, `NotSetAside`.
    """
    way = _way(ctx, _event_here(ctx, event_id), kind, webhook_id, reason)
    with connection.cursor() as cursor:
        cursor.execute(_AGAIN.format(table=way.table, prefix=way.prefix), [way.key])
    _note(ctx, "RetryDelivery", way, reason)
    return str(event_id)


_PAST = """
UPDATE {table} SET {done} = clock_timestamp() WHERE id = %s
"""
"""What was set aside and is done was skipped: it keeps its tries, its fault and when it was set aside."""


@command("SkipDelivery", strict=True)
def skip_delivery(
    ctx: Context, *, event_id: UUID, kind: str, webhook_id: UUID | None = None, reason: str
) -> str:
    """Go past a set-aside event: its consumer never gets it, and what waits behind it goes on, in order.

    Guards: an operator of the project whose webhook it is; a PlatformAdmin alone for the product's own
    handlers, because what they did not do about the event stays undone, and for the streams, which are
    everybody's; a reason. There is no way back. Emits:
    nothing. Errors: `NotFound`, `InvalidInput`, `NotSetAside`, `InsufficientRole`.
    """
    event = _event_here(ctx, event_id)
    if kind in INSIDE and ctx.actor.kind != "system" and PLATFORM not in ctx.actor.roles:
        raise InsufficientRole(f"{INSIDE[kind]}: only a PlatformAdmin says so.")
    way = _way(ctx, event, kind, webhook_id, reason)
    with connection.cursor() as cursor:
        cursor.execute(_PAST.format(table=way.table, done=way.done), [way.key])
    _note(ctx, "SkipDelivery", way, reason)
    wake(OUTBOX)
    return str(event_id)


@dataclass(frozen=True, slots=True)
class LockedDelivery:
    """The locked row of an event's way to one consumer, where it was set aside."""

    event: OutboxEvent
    kind: str
    webhook_id: UUID | None
    table: str
    key: UUID
    prefix: str
    done: str
    attempts: int
    fault: str


def _event_here(ctx: Context, event_id: UUID) -> OutboxEvent:
    """The event, locked. Of another project there is none, whoever asks and whatever was sent about it."""
    event = lock(OutboxEvent, event_id, missing=_missing())
    if ctx.project_id is not None and event.project_id != ctx.project_id:
        raise _missing()
    return event


def _way(ctx: Context, event: OutboxEvent, kind: str, webhook_id: UUID | None, reason: str) -> LockedDelivery:
    """Raises `InvalidInput`, `NotFound`, and `NotSetAside` for what no person has to decide about."""
    faults = reason_faults(reason)
    if kind not in KINDS:
        faults.append(FieldError("/kind", f"One of {', '.join(KINDS)}."))
    if faults:
        raise InvalidInput("Say for which consumer, and why.", errors=faults)
    row: OutboxEvent | WebhookDelivery | None = event
    table, prefix, done = "factory_outboxevent", f"{PREFIXES.get(kind)}_", DONE.get(kind, "")
    if kind == WEBHOOK:
        table, prefix, done = "factory_webhookdelivery", "", "delivered_at"
        rows = WebhookDelivery.objects.select_for_update(no_key=True, of=("self",))
        if ctx.project_id is not None:  # a tenant's own subscription is nobody's of one project
            rows = rows.filter(subscription__project_id=ctx.project_id)
        row = rows.filter(event_id=event.id, subscription_id=webhook_id).first()
    if row is None:
        raise _missing()
    if getattr(row, f"{prefix}set_aside_at") is None or getattr(row, done) is not None:
        raise NotSetAside("The event is on its way, has arrived, or was skipped: nothing is to be decided.")
    attempts, fault = getattr(row, f"{prefix}attempts"), getattr(row, f"{prefix}error")
    return LockedDelivery(event, kind, webhook_id, table, row.id, prefix, done, attempts, fault)


def _note(ctx: Context, action: str, way: LockedDelivery, reason: str) -> None:
    told = {"topic": way.event.topic, "kind": way.kind, "webhook": str(way.webhook_id or "")}
    audit(
        ctx, action, subject=f"event:{way.event.id}", reason=reason.strip(), stream=way.event.stream_id,
        detail=told | {"attempts": way.attempts, "fault": way.fault[:200]},
    )  # fmt: skip


def _missing() -> NotFound:
    return NotFound("There is no such event here.")
