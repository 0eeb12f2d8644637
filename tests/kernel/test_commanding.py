"""A command is one transaction: state, journal, outbox, audit and idempotency record, or nothing."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from uuid import UUID, uuid4

import pytest
from django.db import DatabaseError, connection, transaction

from factory.kernel.commanding import IdempotencyKey, IdempotentReplay
from factory.kernel.context import Context
from factory.kernel.errors import (
    Busy,
    Forbidden,
    IdempotencyConflict,
    InsufficientRole,
    InsufficientScope,
    NotFound,
    TransitionRefused,
)
from factory.kernel.models import AuditEntry, IdempotencyRecord, JournalEntry, OutboxEvent
from factory.kernel.recording import NoCommandOpen, UndeclaredTransition, record
from factory.kernel.tenancy import TenantNotSet, bound, reading

from .conftest import operator
from .doors.acts import DoorIsStuck, build_door, hang, misbehave, paint_door, shut_and_open_door, shut_door
from .doors.models import Door, DoorBuilt, DoorShut


def build(ctx: Context, colour: str = "red") -> UUID:
    return UUID(build_door(ctx, colour=colour)["doorId"])


@pytest.mark.requirement("RUN-20", "JRN-01")
def test_writes_state_journal_outbox_and_audit_in_one_commit(ctx: Context) -> None:
    door_id = build(ctx)
    with reading(ctx):
        door = Door.objects.get(pk=door_id)
        (entry,) = JournalEntry.objects.all()
        (event,) = OutboxEvent.objects.all()
        (audit,) = AuditEntry.objects.all()
    assert (door.state, door.version, door.tenant_id) == ("Open", 1, ctx.tenant_id)
    assert (entry.sequence, entry.cause, entry.from_state, entry.to_state) == (1, "Built", "None", "Open")
    assert (entry.entity, entry.entity_id, entry.actor, entry.operation) == (
        "door",
        door_id,
        "ada",
        "BuildDoor",
    )
    assert (event.topic, event.payload) == (DoorBuilt.topic, {"doorId": str(door_id), "colour": "red"})
    assert (event.stream_id, event.sequence, event.position) == (door_id, 1, 0)
    assert (audit.action, audit.outcome, audit.subject) == ("BuildDoor", "done", f"door:{door_id}")
    assert {entry.correlation_id, event.correlation_id, audit.correlation_id} == {ctx.correlation_id}


@pytest.mark.requirement("RUN-20")
def test_keeps_nothing_of_a_command_that_fails_at_its_end(ctx: Context) -> None:
    def fail(inner: Context) -> None:
        hang(inner, colour="blue")
        raise RuntimeError("just before the commit")

    with pytest.raises(RuntimeError):
        misbehave(ctx, act=fail)
    with reading(ctx):
        for table in (Door, JournalEntry, OutboxEvent, AuditEntry):
            assert not table.objects.exists()


@pytest.mark.requirement("SEC-06")
def test_audits_a_refusal_that_is_evidence_after_rolling_everything_back(ctx: Context) -> None:
    door_id = build(ctx)
    with pytest.raises(DoorIsStuck):
        shut_door(ctx, door_id=door_id, stuck=True)
    with reading(ctx):
        assert Door.objects.get(pk=door_id).state == "Open"
        assert JournalEntry.objects.count() == 1
        refused = AuditEntry.objects.get(outcome="refused")
    assert (refused.action, refused.subject, refused.reason) == (
        "ShutDoor",
        f"door:{door_id}",
        "It does not move.",
    )
    assert refused.detail == {"code": "door-is-stuck"}


@pytest.mark.requirement("JRN-01")
def test_journals_every_transition_of_a_command_singly(ctx: Context) -> None:
    door_id = build(ctx)
    shut_and_open_door(ctx, door_id=door_id)
    with reading(ctx):
        steps = list(
            JournalEntry.objects.order_by("sequence").values_list("sequence", "from_state", "to_state")
        )
        assert Door.objects.get(pk=door_id).version == 2, "one command raises the version by one"
    assert steps == [(1, "None", "Open"), (2, "Open", "Shut"), (3, "Shut", "Open")]


def test_refuses_a_transition_that_the_machine_does_not_allow(ctx: Context) -> None:
    door_id = build(ctx)
    shut_door(ctx, door_id=door_id)
    with pytest.raises(TransitionRefused):
        shut_door(ctx, door_id=door_id)


@pytest.mark.parametrize(
    ("cause", "events"),
    [("Kicked", []), ("Built", []), ("Built", [DoorShut(door_id="1")]), ("Painted", [])],
)
def test_refuses_to_record_what_is_not_declared(ctx: Context, cause: str, events: list) -> None:
    with pytest.raises(UndeclaredTransition):
        misbehave(ctx, act=lambda c: record(c, Door(colour="red"), cause, *events))


def test_refuses_an_operation_outside_a_command(ctx: Context) -> None:
    with pytest.raises(NoCommandOpen):
        hang(ctx, colour="red")
    with bound(ctx), pytest.raises(NoCommandOpen):
        hang(ctx, colour="red")


def test_refuses_a_command_inside_a_transaction(ctx: Context) -> None:
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        build_door(ctx)
    with pytest.raises(RuntimeError, match="durable"):
        misbehave(ctx, act=lambda c: build_door(c))


def test_asks_the_permission_table_before_anything_else(ctx: Context) -> None:
    scopeless = replace(ctx, actor=replace(ctx.actor, scopes=frozenset()))
    roleless = replace(ctx, actor=replace(ctx.actor, roles=frozenset({"Observer"})))
    worker = replace(ctx, actor=replace(ctx.actor, kind="worker"))
    for caller, refusal in (
        (scopeless, InsufficientScope),
        (roleless, InsufficientRole),
        (worker, Forbidden),
    ):
        with pytest.raises(refusal):
            build_door(caller)


@pytest.mark.requirement("IDN-13")
def test_answers_404_for_a_row_of_another_tenant(ctx: Context) -> None:
    door_id = build(ctx)
    stranger = operator(f"{ctx.tenant_id}-x")
    with pytest.raises(NotFound) as foreign:
        shut_door(stranger, door_id=door_id)
    with pytest.raises(NotFound) as missing:
        shut_door(stranger, door_id=uuid4())
    assert str(foreign.value).replace(str(door_id), "") == str(missing.value).replace(
        str(missing.value).split()[-2], ""
    )


@pytest.mark.requirement("API-02", "API-03")
class TestIdempotency:
    def test_answers_a_repeat_with_the_first_result(self, ctx: Context) -> None:
        once = IdempotencyKey("key-1", "sha256:a")
        first = build_door.under(once)(ctx)
        with pytest.raises(IdempotentReplay) as again:
            build_door.under(once)(ctx)
        assert again.value.result == first
        with reading(ctx):
            assert Door.objects.count() == 1

    def test_refuses_the_same_key_for_another_request(self, ctx: Context) -> None:
        build_door.under(IdempotencyKey("key-1", "sha256:a"))(ctx)
        with pytest.raises(IdempotencyConflict):
            build_door.under(IdempotencyKey("key-1", "sha256:b"))(ctx)

    @pytest.mark.requirement("API-04")
    def test_keeps_keys_of_other_tenants_projects_and_operations_apart(self, ctx: Context) -> None:
        once = IdempotencyKey("key-1", "sha256:a")
        build_door.under(once)(ctx)
        build_door.under(once)(replace(ctx, project_id=uuid4()))
        build_door.under(once)(operator(f"{ctx.tenant_id}-x"))
        build_door.under(IdempotencyKey("key-1", "sha256:a", operation="Other"))(ctx)

    def test_leaves_no_record_of_a_refusal(self, ctx: Context) -> None:
        door_id = build(ctx)
        once = IdempotencyKey("key-1")
        with pytest.raises(DoorIsStuck):
            shut_door.under(once)(ctx, door_id=door_id, stuck=True)
        shut_door.under(once)(ctx, door_id=door_id)
        with reading(ctx):
            assert IdempotencyRecord.objects.count() == 1

    @pytest.mark.requirement("API-05")
    def test_makes_one_of_many_at_once(self, ctx: Context) -> None:
        barrier = threading.Barrier(8)

        def submit(_: int) -> str:
            barrier.wait()
            try:
                return str(build_door.under(IdempotencyKey("key-1", "sha256:a"))(ctx)["doorId"])
            except IdempotentReplay as done:
                return str(done.result["doorId"])
            finally:
                connection.close()

        with ThreadPoolExecutor(8) as pool:
            ids = set(pool.map(submit, range(8)))
        assert len(ids) == 1
        with reading(ctx):
            assert Door.objects.count() == 1
            assert OutboxEvent.objects.count() == 1


@pytest.mark.requirement("JRN-09")
def test_numbers_stay_gapless_under_concurrency(ctx: Context) -> None:
    door_id = build(ctx)

    def paint(n: int) -> None:
        try:
            paint_door(ctx, door_id=door_id, colour=f"c{n}")
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(paint, range(40)))
    with reading(ctx):
        entries = list(JournalEntry.objects.order_by("sequence"))
        assert Door.objects.get(pk=door_id).version == 41
    assert [e.sequence for e in entries] == list(range(1, 42))
    assert all(a.hash == b.prev_hash for a, b in pairwise(entries))


def test_answers_busy_when_a_lock_is_not_to_be_had(ctx: Context) -> None:
    door_id = build(ctx)
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with bound(ctx):
            Door.objects.select_for_update(no_key=True).get(pk=door_id)
            held.set()
            release.wait(30)
        connection.close()

    def hurried(c: Context) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '20ms'")
        Door.objects.select_for_update(no_key=True).get(pk=door_id)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    try:
        with pytest.raises(Busy) as busy:
            misbehave(ctx, act=hurried)
        assert busy.value.retryable
    finally:
        release.set()
        holder.join()


@pytest.mark.requirement("RUN-20")
def test_the_database_refuses_a_state_change_that_was_not_journaled(ctx: Context) -> None:
    door_id = build(ctx)
    with (
        pytest.raises(DatabaseError, match="without a journal entry"),
        bound(ctx),
        connection.cursor() as cursor,
    ):
        cursor.execute("UPDATE doors_door SET state = 'Shut', shut_at = now() WHERE id = %s", [door_id])
    with (
        pytest.raises(DatabaseError, match="without a journal entry"),
        bound(ctx),
        connection.cursor() as cursor,
    ):
        cursor.execute(
            "INSERT INTO doors_door (id, tenant_id, state, version, colour) VALUES (%s, %s, 'Open', 1, 'x')",
            [uuid4(), ctx.tenant_id],
        )
    with reading(ctx):
        assert Door.objects.get(pk=door_id).state == "Open"


def test_a_check_ties_the_state_to_its_columns(ctx: Context) -> None:
    def shut_without_time(c: Context) -> None:
        door = Door(colour="red", state="Shut")
        door.save(force_insert=True)

    with pytest.raises(DatabaseError):
        misbehave(ctx, act=shut_without_time)


def test_reading_outside_any_tenant_is_a_clear_error() -> None:
    with pytest.raises(TenantNotSet):
        Door.objects.count()
