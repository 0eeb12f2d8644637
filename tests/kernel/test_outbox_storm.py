"""The outbox under everything at once: slow commits, rollbacks, several relays, and relays that are killed.

Each check is also shown to fail: with a relay that marks before it delivers, with one that minds no order,
and with a consumer that keeps no inbox.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, connections

from factory.kernel import chain
from factory.kernel.context import Context
from factory.kernel.errors import Conflict
from factory.kernel.models import OutboxEvent
from factory.kernel.tenancy import bound, reading
from factory.messaging.relay import Received, delivery
from factory.messaging.relay.delivery import drain
from factory.messaging.relay.destinations import Handlers
from factory.messaging.relay.handlers import Handler, _handlers
from tests.faults.rounds import MORE
from tests.support.evidence import audits, violations

from .doors.acts import build_door, shut_and_open_door
from .doors.models import DoorBuilt, DoorShut
from .test_relay import remember

SEED = int(os.environ.get("FACTORY_TEST_SEED", "20261129"))
WRITERS, WRITES, DOORS = 8, 12, 5

RELAY = """
import sys, time, django
django.setup()
from factory.messaging.relay.delivery import deliver_due
from factory.messaging.relay.destinations import Handlers
from factory.messaging.relay.handlers import Handler, _handlers
from tests.kernel.test_relay import remember
from tests.kernel.doors.models import DoorBuilt, DoorShut
def hear(ctx, event):
    remember.under(event.once("doors.hear"))(ctx, what=str(event.id))
for topic in (DoorBuilt.topic, DoorShut.topic):
    _handlers[topic] = [Handler("doors.hear", topic, hear)]
print("up", flush=True)
while True:
    try:
        deliver_due(Handlers(), {tenant!r})
    except Exception:
        pass
    time.sleep(0.02)
"""


def lost_and_inverted(ctx: Context) -> tuple[int, int]:
    """Events without an effect, and effects that came before that of an earlier event of their stream."""
    with reading(ctx):
        told = {
            str(event.id): (event.stream_id, event.sequence, event.position)
            for event in OutboxEvent.objects.all()
        }
    effects = [entry.subject for entry in sorted(audits(ctx, "remembered"), key=lambda e: e.sequence)]
    inversions, last = 0, dict[UUID, tuple[int, int]]()
    for event in effects:
        stream, *place = told[event]
        where = (place[0], place[1])
        inversions += where < last.get(stream, (0, 0))
        last[stream] = max(where, last.get(stream, (0, 0)))
    assert len(effects) == len(set(effects)), "an effect happened twice"
    return len(told) - len(effects), inversions


def listen(monkeypatch: pytest.MonkeyPatch, *names: str, inbox: bool = True) -> None:
    """In-process consumers of doors' events, each of which remembers what it has heard."""

    def consumer(name: str) -> Handler:
        def hear(ctx: Context, event: Received) -> None:
            told = f"{event.id}" if len(names) == 1 else f"{name} {event.id}"
            if inbox:
                remember.under(event.once(name))(ctx, what=told)
            else:
                remember(ctx, what=told)

        return Handler(name, DoorBuilt.topic, hear)

    for topic in (DoorBuilt.topic, DoorShut.topic):
        monkeypatch.setitem(_handlers, topic, [consumer(name) for name in names])


@pytest.fixture
def storm(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> threading.Thread:
    """Writers in threads: commits that take a while, and one in five that never comes."""
    chance, plain = random.Random(SEED), chain.write

    def write(work: Any, *, audited: bool) -> bool:
        told = plain(work, audited=audited)
        if work.operation == "ShutAndOpenDoor":
            time.sleep(chance.uniform(0, 0.04))
            if chance.random() < 0.2:
                raise Conflict("rolled back")
        return told

    doors = [UUID(build_door(ctx)["doorId"]) for _ in range(DOORS)]
    monkeypatch.setattr(chain, "write", write)

    def one() -> None:
        for _ in range(WRITES):
            try:
                shut_and_open_door(ctx, door_id=chance.choice(doors))
            except Conflict:
                continue
        connections.close_all()

    def all_of_them() -> None:
        writers = [threading.Thread(target=one) for _ in range(WRITERS)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()

    return threading.Thread(target=all_of_them)


def relay(ctx: Context) -> "subprocess.Popen[str]":
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings"}
    program = RELAY.replace("{tenant!r}", repr(ctx.tenant_id))
    return subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.slow
@pytest.mark.requirement("EVT-04", "EVT-06")
@pytest.mark.parametrize("relays", [1, 3] if MORE > 1 else [3])
def test_nothing_is_lost_or_overtaken_by_slow_commits_rollbacks_and_kills(
    ctx: Context, storm: threading.Thread, relays: int
) -> None:
    running = [relay(ctx) for _ in range(relays)]
    try:
        for each in running:
            assert each.stdout is not None
            assert each.stdout.readline() == "up\n"
        storm.start()
        while storm.is_alive():
            time.sleep(0.4)
            victim = running.pop(0)
            victim.send_signal(signal.SIGKILL)
            victim.wait()
            running.append(relay(ctx))
        storm.join()
        last, end = running[-1], time.monotonic() + 60
        while time.monotonic() < end and waiting(ctx):
            time.sleep(0.2)
        assert last.poll() is None
    finally:
        for each in running:
            each.kill()
            each.wait()
    assert waiting(ctx) == 0
    assert lost_and_inverted(ctx) == (0, 0), f"seed {SEED}"
    assert violations(ctx.tenant_id) == []


def waiting(ctx: Context) -> int:
    with reading(ctx):
        return OutboxEvent.objects.filter(handled_at=None).count()


class Killed(BaseException):
    """As a SIGKILL: nothing catches it."""


def test_the_storm_would_see_an_event_lost(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relay that marks first and delivers afterwards loses what it had marked when it is killed."""
    listen(monkeypatch, "doors.hear")
    door_id = UUID(build_door(ctx)["doorId"])
    shut_and_open_door(ctx, door_id=door_id)
    plain = Handlers.deliver

    def marks_first(self: Handlers, of: Context, event: OutboxEvent) -> None:
        delivery._mark(self, of, [event.id], None)
        if event.sequence > 1:
            raise Killed
        plain(self, of, event)

    with monkeypatch.context() as broken:
        broken.setattr(Handlers, "deliver", marks_first)
        with pytest.raises(Killed):
            drain(Handlers(), ctx.tenant_id)
    drain(Handlers(), ctx.tenant_id)
    assert lost_and_inverted(ctx) == (1, 0)


def test_the_storm_would_see_an_order_broken(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relay that goes on past a failing event, as SKIP LOCKED does, turns the order around."""
    listen(monkeypatch, "doors.hear")
    door_id = UUID(build_door(ctx)["doorId"])
    for _ in range(3):
        shut_and_open_door(ctx, door_id=door_id)
    with reading(ctx):
        events = list(OutboxEvent.objects.order_by("-sequence"))
    for event in events:
        Handlers().deliver(delivery.context_of(event), event)
    assert lost_and_inverted(ctx)[1] > 0


@pytest.mark.requirement("EVT-03")
def test_five_deliveries_to_two_consumers_have_one_effect_each(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    listen(monkeypatch, "doors.one", "doors.two")
    effects = deliver_five_times(ctx)
    assert len(effects) == len(set(effects)) == 2 * 4
    assert violations(ctx.tenant_id) == []


def test_without_an_inbox_there_would_be_five(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    listen(monkeypatch, "doors.one", "doors.two", inbox=False)
    assert len(deliver_five_times(ctx)) == 5 * 2 * 4


def deliver_five_times(ctx: Context) -> list[str]:
    door_id = UUID(build_door(ctx)["doorId"])
    for _ in range(3):
        shut_and_open_door(ctx, door_id=door_id)
    for _ in range(5):
        drain(Handlers(), ctx.tenant_id)
        with bound(ctx), connection.cursor() as cursor:
            cursor.execute("UPDATE factory_outboxevent SET handled_at = NULL")
    with bound(ctx), connection.cursor() as cursor:
        cursor.execute("UPDATE factory_outboxevent SET handled_at = now()")
    return [entry.subject for entry in audits(ctx, "remembered")]
