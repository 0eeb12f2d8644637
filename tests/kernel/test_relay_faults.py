"""What a relay meets: kills, faults with bad words in them, brokers that are full, rivals."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from uuid import UUID

import psycopg
import pytest
import redis
from django.db import InterfaceError, OperationalError, connection
from psycopg import errors

from factory.kernel.context import Context
from factory.kernel.errors import Conflict
from factory.kernel.models import OutboxEvent
from factory.kernel.tenancy import reading
from factory.messaging.relay import Received, delivery
from factory.messaging.relay.delivery import DestinationAway, _keeper, deliver_due, drain, due_streams, lane
from factory.messaging.relay.destinations import Handlers, Streams
from factory.messaging.relay.handlers import Handler, _handlers
from factory.messaging.relay.loop import Relay
from tests.faults.rounds import rounds
from tests.support.evidence import audits, violations
from tests.support.threads import at_once

from .damage import admin_url
from .doors.acts import build_door, shut_and_open_door, shut_door
from .doors.models import DoorBuilt, DoorShut
from .test_relay import make_due, remember

pytestmark = pytest.mark.slow

KILLED = """
import os, signal, time, django
django.setup()
from uuid import UUID
from factory.messaging.relay import delivery
from factory.messaging.relay.destinations import Handlers
from factory.messaging.relay.handlers import Handler, _handlers
from tests.kernel.test_relay import remember
from tests.kernel.doors.models import DoorBuilt
def hear(ctx, event):
    remember.under(event.once("doors.hear"))(ctx, what=event.topic)
_handlers[DoorBuilt.topic] = [Handler("doors.hear", DoorBuilt.topic, hear)]
delivery._mark = lambda *args: os.kill(os.getpid(), signal.SIGKILL)
for _ in range(200):  # another relay that was killed before may hold the lane a moment longer
    delivery.deliver_due(Handlers(), {tenant!r})
    time.sleep(0.1)
"""


def handle(monkeypatch: pytest.MonkeyPatch, act: Any, *topics: str) -> None:
    for topic in topics or (DoorBuilt.topic,):
        monkeypatch.setitem(_handlers, topic, [Handler("doors.hear", topic, act)])


def test_a_relay_killed_between_delivery_and_mark_has_one_effect(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_door(ctx)
    program = KILLED.format(tenant=ctx.tenant_id)
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings"}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    assert len(audits(ctx, "remembered")) == 1

    def hear(ctx: Context, event: Received) -> None:
        remember.under(event.once("doors.hear"))(ctx, what=event.topic)

    handle(monkeypatch, hear)
    assert drain(Handlers(), ctx.tenant_id) == 1
    assert len(audits(ctx, "remembered")) == 1
    assert violations(ctx.tenant_id) == []


@pytest.mark.parametrize("words", ["a \x00 in it", "a \ud83d in it", "x\nDETAIL: Key (s3cret)"])
def test_the_words_of_a_fault_stop_no_other_stream(
    ctx: Context, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    broken = UUID(build_door(ctx)["doorId"])
    build_door(ctx)

    def hear(ctx: Context, event: Received) -> None:
        if event.stream_id == broken:
            raise Conflict(words)

    handle(monkeypatch, hear)
    assert deliver_due(Handlers(), ctx.tenant_id) == 1
    with reading(ctx):
        told = OutboxEvent.objects.get(stream_id=broken).handle_error
    assert told.startswith("Conflict: ")
    assert "s3cret" not in told


@pytest.mark.parametrize("fault", [errors.StatementTooComplex, errors.QueryCanceled, errors.LockNotAvailable])
def test_a_handler_that_the_database_refuses_holds_up_its_own_stream_alone(
    ctx: Context, monkeypatch: pytest.MonkeyPatch, fault: type[Exception]
) -> None:
    broken = UUID(build_door(ctx)["doorId"])
    build_door(ctx)

    def hear(ctx: Context, event: Received) -> None:
        if event.stream_id == broken:
            raise OperationalError("no") from fault("no")

    handle(monkeypatch, hear)
    assert deliver_due(Handlers(), ctx.tenant_id) == 1


@pytest.mark.parametrize("fault", [errors.AdminShutdown, errors.TooManyConnections, None])
def test_a_database_that_is_away_is_blamed_on_no_event(
    ctx: Context, monkeypatch: pytest.MonkeyPatch, fault: type[Exception] | None
) -> None:
    build_door(ctx)

    def hear(ctx: Context, event: Received) -> None:
        raise OperationalError("gone") from (fault("gone") if fault else None)

    handle(monkeypatch, hear)
    with pytest.raises(DestinationAway):
        deliver_due(Handlers(), ctx.tenant_id)
    with reading(ctx):
        assert OutboxEvent.objects.get().handle_attempts == 0


@pytest.mark.parametrize("said", ["OOM command not allowed", "MISCONF", "READONLY"])
def test_a_broker_that_takes_nothing_is_blamed_on_no_event(
    ctx: Context, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    class Full:
        def xadd(self, *args: Any, **kwargs: Any) -> None:
            raise redis.ResponseError(said)

    build_door(ctx)
    monkeypatch.setattr("factory.messaging.relay.destinations.broker", Full)
    with pytest.raises(DestinationAway):
        deliver_due(Streams(), ctx.tenant_id)
    with reading(ctx):
        assert OutboxEvent.objects.get().stream_attempts == 0


def test_what_is_delivered_together_after_a_retry_is_never_seen_out_of_order(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = iter([True])

    def hear(ctx: Context, event: Received) -> None:
        if next(fails, False):
            raise ValueError("once")

    handle(monkeypatch, hear, DoorBuilt.topic, DoorShut.topic)
    door_id = UUID(build_door(ctx)["doorId"])
    for _ in range(5):
        shut_and_open_door(ctx, door_id=door_id)
    deliver_due(Handlers(), ctx.tenant_id)
    make_due(ctx)
    with connection.cursor() as cursor:  # the rows as they lie, where the one that was retried is the last
        cursor.execute("SET enable_indexscan = off; SET enable_bitmapscan = off")
    try:
        drain(Handlers(), ctx.tenant_id)
    finally:
        connection.close()
    assert [v for v in violations(ctx.tenant_id) if v.code == "C3"] == []
    with reading(ctx):
        assert not OutboxEvent.objects.filter(handled_at__isnull=True).exists()


def test_a_failure_that_comes_late_marks_nothing_that_a_rival_has_delivered(ctx: Context) -> None:
    build_door(ctx)
    with reading(ctx):
        event = OutboxEvent.objects.get()
    drain(Handlers(), ctx.tenant_id)
    delivery._mark(Handlers(), ctx, [], (event, ValueError("late")))
    with reading(ctx):
        assert OutboxEvent.objects.get().handle_attempts == 0


def test_two_relays_at_once_have_one_effect_each(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    def hear(ctx: Context, event: Received) -> None:
        remember.under(event.once("doors.hear"))(ctx, what=str(event.id))

    handle(monkeypatch, hear)
    for _ in range(20):
        build_door(ctx)
    monkeypatch.setattr(delivery, "lane", everybodys)  # both believe that they hold every lane
    at_once([lambda: drain(Handlers(), ctx.tenant_id)] * 3)
    assert len(audits(ctx, "remembered")) == 20
    assert violations(ctx.tenant_id) == []


def everybodys(number: int, destination: Any) -> Any:
    return nullcontext(True)


def test_a_lane_whose_connection_is_lost_is_worked_no_further(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[UUID] = []

    def hear(ctx: Context, event: Received) -> None:
        heard.append(event.id)
        with psycopg.connect(admin_url(), autocommit=True) as admin:
            admin.execute("SELECT pg_terminate_backend(%s)", [_keeper().info.backend_pid])

    handle(monkeypatch, hear)
    monkeypatch.setattr("factory.kernel.chain.LANES", 1)
    for _ in range(3):
        build_door(ctx)
    with pytest.raises(psycopg.OperationalError):
        deliver_due(Handlers(), ctx.tenant_id)
    assert len(heard) == 1
    with lane(0, Handlers()) as ours:
        assert ours, "the lane is free again"


@pytest.mark.parametrize("fault", [InterfaceError(), RuntimeError("a defect"), OperationalError()])
def test_a_relay_goes_on_after_any_fault(monkeypatch: pytest.MonkeyPatch, fault: Exception) -> None:
    relay, rounds = Relay(), []

    def round_(destination: Any) -> int:
        rounds.append(destination.prefix)
        if len(rounds) == 1:
            raise fault
        relay.stop()
        return 0

    monkeypatch.setattr("factory.messaging.relay.loop.deliver_due", round_)
    thread = threading.Thread(target=relay._rounds, args=(Handlers(), 0.01))
    thread.start()
    thread.join(10)
    assert rounds == ["handle", "handle"]


@pytest.fixture
def full_outbox(own_database: str, ctx: Context) -> Iterator["psycopg.Cursor[Any]"]:
    """40,000 delivered events and 2,000 that wait; five times as many with FACTORY_FAULT_ROUNDS=5."""
    insert = """
        INSERT INTO factory_outboxevent (tenant_id, id, stream_id, sequence, position, lane, topic,
            schema_version, correlation_id, traceparent, payload, occurred_at, transaction_id,
            handle_attempts, handle_error, stream_attempts, stream_error, handled_at, streamed_at)
        SELECT %s, gen_random_uuid(), s.id, n, 0, s.lane, 'doors.doors.v1.door-shut', 1, gen_random_uuid(),
            '', '{}', now(), 1, 0, '', 0, '', CASE WHEN n < 21 THEN now() END,
            CASE WHEN n < 21 THEN now() END
        FROM (SELECT gen_random_uuid() AS id, i %% 64 AS lane FROM generate_series(1, %s) i) s,
             generate_series(1, 21) n
    """
    with psycopg.connect(admin_url()) as admin, admin.cursor() as cursor:
        cursor.execute(insert, [ctx.tenant_id, rounds(2000)])
        cursor.execute("ANALYZE factory_outboxevent")
        cursor.execute(f"SET LOCAL ROLE {connection.settings_dict['USER'].removesuffix('_app')}_scan")
        yield cursor
        admin.rollback()


@pytest.mark.slow
@pytest.mark.parametrize("destination", [Handlers(), Streams()], ids=["handle", "stream"])
def test_a_full_outbox_is_looked_through_by_its_partial_indexes(
    full_outbox: "psycopg.Cursor[Any]", monkeypatch: pytest.MonkeyPatch, destination: Any
) -> None:
    plans: list[str] = []

    class Explained:
        def execute(self, sql: str, params: Any) -> None:
            full_outbox.execute("EXPLAIN ANALYZE " + sql, params)  # type: ignore[call-overload]
            plans.append("\n".join(line for (line,) in full_outbox.fetchall()))

        def fetchall(self) -> list[Any]:
            return []

    @contextmanager
    def explaining() -> Iterator[Explained]:
        yield Explained()

    monkeypatch.setattr(delivery, "scanning", explaining)
    delivery.busy_lanes(destination)
    due_streams(destination, [5])
    due_streams(destination, list(range(64)))
    for plan in plans:
        assert f"outbox_un{'handled' if destination.prefix == 'handle' else 'streamed'}" in plan
        assert "Seq Scan" not in plan


def test_events_of_one_transaction_are_delivered_in_the_order_that_they_were_told(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    handle(monkeypatch, lambda ctx, event: heard.append(event.topic), DoorBuilt.topic, DoorShut.topic)
    door_id = UUID(build_door(ctx)["doorId"])
    shut_and_open_door(ctx, door_id=door_id)
    shut_door(ctx, door_id=door_id)
    drain(Handlers(), ctx.tenant_id)
    assert heard == [DoorBuilt.topic, DoorShut.topic, DoorShut.topic]
