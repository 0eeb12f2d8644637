"""The outbox: nothing is lost, order holds within a stream, and a poison event blocks its own stream."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import pytest
import redis
from django.conf import settings
from django.db import connection

from factory.kernel.chain import lane_of
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.hints import broker, connect
from factory.kernel.models import IdempotencyRecord, OutboxEvent
from factory.kernel.permissions import permit, register_permit
from factory.kernel.recording import audit
from factory.kernel.tenancy import bound, reading
from factory.messaging.relay import Received, handlers
from factory.messaging.relay.delivery import ATTEMPTS, DestinationAway, deliver_due, drain, lane
from factory.messaging.relay.destinations import Handlers, Streams, envelope
from factory.messaging.relay.handlers import Handler, _handlers

from .doors.acts import build_door, paint_door, shut_and_open_door, shut_door
from .doors.models import DoorBuilt, DoorShut

register_permit(permit("Remember", scope=None, roles=(), kinds=("system",), level="tenant"))


@command("Remember", audited=False)
def remember(ctx: Context, *, what: str) -> None:
    audit(ctx, "remembered", subject=what, outcome="noted")


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, UUID]]:
    """Registers a handler for the two events of doors, for one test."""
    seen: list[tuple[str, UUID]] = []

    def hear(ctx: Context, event: Received) -> None:
        remember.under(event.once("doors.hear"))(ctx, what=event.topic)
        seen.append((event.topic, event.id))

    for topic in (DoorBuilt.topic, DoorShut.topic):
        monkeypatch.setitem(_handlers, topic, [Handler("doors.hear", topic, hear)])
    return seen


def fail_with(monkeypatch: pytest.MonkeyPatch, topic: str, broken: set[UUID]) -> None:
    def poison(ctx: Context, event: Received) -> None:
        if event.stream_id in broken:
            raise ValueError("cannot digest this")

    monkeypatch.setitem(_handlers, topic, [Handler("doors.poison", topic, poison)])


def make_due(ctx: Context) -> None:
    with bound(ctx), connection.cursor() as cursor:
        cursor.execute("UPDATE factory_outboxevent SET handle_due_at = clock_timestamp() - interval '1 s'")


def test_delivers_each_event_once_and_in_order(ctx: Context, heard: list) -> None:
    doors = [UUID(build_door(ctx)["doorId"]) for _ in range(3)]
    for _ in range(3):
        for door_id in doors:
            shut_and_open_door(ctx, door_id=door_id)
    assert drain(Handlers(), ctx.tenant_id) == 12
    assert drain(Handlers(), ctx.tenant_id) == 0
    with reading(ctx):
        told = list(OutboxEvent.objects.order_by("sequence", "position").values_list("stream_id", "id"))
        assert not OutboxEvent.objects.filter(handled_at=None).exists()
    for door_id in doors:
        mine = {event for stream, event in told if stream == door_id}
        assert [e for _, e in heard if e in mine] == [event for stream, event in told if stream == door_id]


@pytest.mark.requirement("EVT-03")
def test_a_second_delivery_has_no_second_effect(ctx: Context, heard: list) -> None:
    build_door(ctx)
    drain(Handlers(), ctx.tenant_id)
    with bound(ctx), connection.cursor() as cursor:
        cursor.execute("UPDATE factory_outboxevent SET handled_at = NULL")
    assert drain(Handlers(), ctx.tenant_id) == 1
    with reading(ctx):
        assert IdempotencyRecord.objects.filter(operation="doors.hear").count() == 1
    assert len(heard) == 1


@pytest.mark.requirement("EVT-04")
def test_several_relays_lose_nothing_and_keep_the_order(ctx: Context, heard: list) -> None:
    stop, writers = threading.Event(), 4

    def relay() -> None:
        while not stop.is_set():
            deliver_due(Handlers(), ctx.tenant_id)
        connection.close()

    def write(_: int) -> None:
        door_id = UUID(build_door(ctx)["doorId"])
        for _ in range(8):
            shut_and_open_door(ctx, door_id=door_id)
        connection.close()

    relays = [threading.Thread(target=relay) for _ in range(3)]
    for thread in relays:
        thread.start()
    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(write, range(writers)))
    stop.set()
    for thread in relays:
        thread.join()
    drain(Handlers(), ctx.tenant_id)
    with reading(ctx):
        order = {e.id: (e.stream_id, e.sequence) for e in OutboxEvent.objects.all()}
    assert len(order) == len(heard) == writers * 9
    seen: dict[UUID, int] = {}
    for _, event in heard:
        stream, sequence = order[event]
        assert sequence > seen.get(stream, 0), "an event overtook an earlier one of its stream"
        seen[stream] = sequence


@pytest.mark.requirement("EVT-06")
def test_a_failing_event_waits_and_blocks_only_its_own_stream(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    sick, well = (UUID(build_door(ctx)["doorId"]) for _ in range(2))
    fail_with(monkeypatch, DoorBuilt.topic, {sick})
    for door_id in (sick, well):
        shut_door(ctx, door_id=door_id)
    assert drain(Handlers(), ctx.tenant_id) == 2
    with reading(ctx):
        waiting = list(OutboxEvent.objects.filter(handled_at=None).order_by("sequence"))
    assert [e.stream_id for e in waiting] == [sick, sick]
    assert waiting[0].handle_attempts == 1
    assert waiting[0].handle_due_at is not None
    assert waiting[0].handle_error == "ValueError: cannot digest this"
    assert waiting[1].handle_attempts == 0, "nothing goes past an undelivered event of its stream"


@pytest.mark.requirement("JOB-14", "EVT-06")
def test_a_poison_event_is_set_aside_after_its_retries_and_seen(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    door_id = UUID(build_door(ctx)["doorId"])
    fail_with(monkeypatch, DoorBuilt.topic, {door_id})
    for _ in range(ATTEMPTS):
        make_due(ctx)
        deliver_due(Handlers(), ctx.tenant_id)
    with reading(ctx):
        event = OutboxEvent.objects.get()
    assert event.handle_set_aside_at is not None
    assert event.handle_attempts == ATTEMPTS
    make_due(ctx)
    assert deliver_due(Handlers(), ctx.tenant_id) == 0
    with reading(ctx):
        assert OutboxEvent.objects.get().handle_attempts == ATTEMPTS, "it rests until a person decides"


def test_a_lane_has_one_relay_at_a_time(ctx: Context) -> None:
    number = lane_of(uuid4())
    taken = []

    def try_it() -> None:
        with lane(number, Handlers()) as ours:
            taken.append(ours)

    with lane(number, Handlers()) as ours:
        assert ours
        other = threading.Thread(target=try_it)
        other.start()
        other.join()
    assert taken == [False]


def test_streams_carry_the_whole_envelope(ctx: Context) -> None:
    door_id = build_door(ctx)["doorId"]
    assert drain(Streams(), ctx.tenant_id) == 1
    with reading(ctx):
        event = OutboxEvent.objects.get()
    store = redis.Redis.from_url(settings.REDIS_URL)
    received = [json.loads(fields[b"event"]) for _, fields in store.xrange(f"factory:{DoorBuilt.topic}")]
    (mine,) = [e for e in received if e["tenantid"] == ctx.tenant_id]
    assert mine == envelope(event)
    assert mine["specversion"] == "1.0"
    assert (mine["id"], mine["type"]) == (str(event.id), DoorBuilt.topic)
    assert mine["data"] == {"doorId": door_id, "colour": "red"}
    assert mine["correlationid"] == str(ctx.correlation_id)
    assert mine["schemaversion"] == 1


@pytest.mark.requirement("FLR-02")
def test_a_broker_that_is_away_holds_up_the_streams_and_nothing_else(
    ctx: Context, heard: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:1/0")
    nowhere = connect(socket_timeout=0.25)
    monkeypatch.setattr("factory.kernel.hints.broker", lambda: nowhere)
    monkeypatch.setattr("factory.messaging.relay.destinations.broker", lambda: nowhere)
    door_id = UUID(build_door(ctx)["doorId"])
    paint_door(ctx, door_id=door_id, colour="blue")
    for _ in range(ATTEMPTS + 1):
        with pytest.raises(DestinationAway):
            deliver_due(Streams(), ctx.tenant_id)
    assert drain(Handlers(), ctx.tenant_id) == 1
    with reading(ctx):
        assert OutboxEvent.objects.get().stream_attempts == 0, "no event is to blame for an outage"
    monkeypatch.setattr("factory.messaging.relay.destinations.broker", broker)
    assert drain(Streams(), ctx.tenant_id) == 1


def test_a_handler_is_declared_once() -> None:
    names = [h.name for topic in (DoorBuilt.topic, DoorShut.topic) for h in handlers(topic)]
    assert len(names) == len(set(names))


def test_a_lost_hint_costs_a_command_nothing(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:1/0")
    tried = []
    nowhere = connect(socket_timeout=0.25)
    monkeypatch.setattr("factory.kernel.hints._silent_until", 0.0)
    monkeypatch.setattr("factory.kernel.hints.broker", lambda: tried.append(1) or nowhere)
    for _ in range(20):
        build_door(ctx)
    assert len(tried) <= 2, "after one failure hints rest for a while"
