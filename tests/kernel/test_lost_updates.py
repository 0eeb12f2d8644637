"""What a command read is what it writes over, whatever happened in between and however it read it."""

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from factory.kernel import clock
from factory.kernel.context import Context
from factory.kernel.errors import Busy, InvalidInput
from factory.kernel.hashing import canonical
from factory.kernel.locking import lock_many
from factory.kernel.recording import Move, NoCommandOpen, UndeclaredTransition, open_work, record, record_many
from factory.kernel.tenancy import TenantNotSet, active, reading
from tests.kernel.doors.acts import build_door, misbehave, paint_door
from tests.kernel.doors.models import Door, DoorShut
from tests.support.evidence import journal, outbox, violations
from tests.support.threads import at_once


def built(ctx: Context) -> Any:
    return build_door(ctx)["doorId"]


def seen(ctx: Context, door_id: Any) -> Door:
    with reading(ctx):
        return Door.objects.get(pk=door_id)


def test_refuses_to_record_over_a_row_that_changed_since_it_was_read(ctx: Context) -> None:
    door_id = built(ctx)

    def act(ctx: Context) -> None:
        stale = Door.objects.get(pk=door_id)  # nobody locked it
        run_elsewhere(lambda: paint_door(ctx, door_id=door_id, colour="green"))
        stale.colour = "blue"
        record(ctx, stale, "Painted")

    with pytest.raises(Busy):
        misbehave(ctx, act=act)
    door = seen(ctx, door_id)
    assert (door.colour, door.version) == ("green", 2)


@pytest.mark.requirement("RUN-27")
def test_no_version_is_given_twice_to_two_who_read_at_once(ctx: Context) -> None:
    door_id = built(ctx)
    meet = threading.Barrier(2)

    def paint(colour: str) -> Callable[[], Any]:
        def act(ctx: Context) -> None:
            door = Door.objects.get(pk=door_id)
            meet.wait(10)
            door.colour = colour
            record(ctx, door, "Painted")

        return lambda: misbehave(ctx, act=act)

    for round_ in range(20):
        answers = at_once([paint("green"), paint("blue")])
        assert sorted(type(a).__name__ for a in answers) == ["Busy", "NoneType"], answers
        assert seen(ctx, door_id).version == 2 + round_


def test_many_rows_are_recorded_as_one_would_be_and_all_or_none_of_them(ctx: Context) -> None:
    ids = [built(ctx) for _ in range(5)]

    def paint_and_shut(ctx: Context, doors: list[Door]) -> None:
        doors[0].colour = 'it\'s \\ "green"'
        for door in doors:
            door.shut(at=clock.now())
        told = [DoorShut(door_id=str(door.id)) for door in doors]
        record_many(ctx, [Move(door, "Pushed", [shut]) for door, shut in zip(doors, told, strict=True)])
        assert [door.changed_fields() for door in doors] == [[]] * 5

    def overtaken(ctx: Context) -> None:
        doors = list(Door.objects.filter(pk__in=ids).order_by("pk"))  # nobody locked them
        run_elsewhere(lambda: paint_door(ctx, door_id=ids[3], colour="blue"))
        paint_and_shut(ctx, doors)

    with pytest.raises(Busy):
        misbehave(ctx, act=overtaken)
    assert [(seen(ctx, i).state, seen(ctx, i).version) for i in ids[2:4]] == [("Open", 1), ("Open", 2)]
    with CaptureQueriesContext(connection) as sent:
        misbehave(ctx, act=lambda ctx: paint_and_shut(ctx, lock_many(Door, ids)))
    doors = [seen(ctx, door_id) for door_id in ids]
    assert [(d.state, d.version, d.colour) for d in doors[:2]] == [
        ("Shut", 2, 'it\'s \\ "green"'),
        ("Shut", 2, "red"),
    ]
    assert all(d.shut_at == doors[0].shut_at or d.shut_at > doors[0].shut_at for d in doors)
    assert sum('UPDATE "doors_door"' in query["sql"] for query in sent) == 2  # one with a new colour
    for door_id in ids:
        assert journal(ctx, door_id)[-1] == ("Open", "Shut", "Pushed")
        assert [topic for topic, _ in outbox(ctx, door_id)][-1] == DoorShut.topic
    with pytest.raises(UndeclaredTransition):
        misbehave(ctx, act=lambda ctx: record_many(ctx, [Move(d, "Painted") for d in lock_many(Door, ids)]))
    assert violations(ctx.tenant_id) == []


def test_a_refreshed_column_is_no_change_and_hides_none(ctx: Context) -> None:
    """(The state itself is protected: Django cannot refresh it, and says so.)"""
    door_id = built(ctx)
    with reading(ctx):
        door = Door.objects.get(pk=door_id)
        door.colour = "blue"
        run_elsewhere(lambda: paint_door(ctx, door_id=door_id, colour="green"))
        door.refresh_from_db(fields=["version"])
        assert (door.version, door.changed_fields()) == (2, ["colour"])
        with pytest.raises(AttributeError):
            door.refresh_from_db()


def test_a_deferred_column_that_is_loaded_later_is_no_change(ctx: Context) -> None:
    door_id = built(ctx)
    with reading(ctx):
        door = Door.objects.defer("colour").get(pk=door_id)
        door.version = 7
        assert door.colour == "red"
        assert door.changed_fields() == ["version"]


def test_a_scope_that_was_copied_into_another_thread_is_no_scope_there(ctx: Context) -> None:
    """asyncio's helpers copy context variables to a thread, whose connection is another one."""
    door_id = built(ctx)

    def look() -> Any:
        with reading(ctx):
            return Door.objects.filter(pk=door_id).count()

    with reading(ctx):
        assert in_copied_context(active) == "TenantNotSet"
        assert in_copied_context(look) == 1

    def act(ctx: Context) -> None:
        assert in_copied_context(open_work) == "NoCommandOpen"

    misbehave(ctx, act=act)


def in_copied_context(act: Callable[[], Any]) -> Any:
    scope, answers = contextvars.copy_context(), []

    def run() -> None:
        try:
            answers.append(scope.run(act))
        except (TenantNotSet, NoCommandOpen) as fault:
            answers.append(type(fault).__name__)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(20)
    return answers[0]


def run_elsewhere(act: Callable[[], Any]) -> None:
    [answer] = at_once([act])
    if isinstance(answer, Exception):
        raise answer


@pytest.mark.parametrize("text", ["a\x00b", "\ud800"])
def test_what_the_database_cannot_keep_is_refused_before_anything_is_hashed(text: str) -> None:
    for value in (text, {"detail": [text]}, {text: 1}):
        with pytest.raises(InvalidInput):
            canonical(value)


def test_text_about_a_nul_is_only_text() -> None:
    assert canonical("\\u0000") == rb'"\\u0000"'
    with pytest.raises(InvalidInput):
        canonical("\\\x00")
