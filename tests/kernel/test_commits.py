"""Commits that fail, that fail to tell, and transactions that are tried again."""

import threading
import time
from functools import partial
from typing import Any

import pytest
from django.db import OperationalError, connection, router, transaction

from factory.kernel import chain
from factory.kernel.commanding import IdempotencyKey, IdempotentReplay, after_commit
from factory.kernel.context import Context
from factory.kernel.models import IdempotencyRecord, OutboxEvent
from factory.kernel.recording import _open, open_work, record
from factory.kernel.tenancy import active_or_none, reading
from factory.kernel.time_limits import TimeIsUp
from tests.kernel.doors.acts import build_door, misbehave, shut_door
from tests.kernel.doors.models import Door, DoorBuilt
from tests.support.evidence import counts, violations
from tests.support.threads import at_once


@pytest.mark.requirement("FLR-10")
def test_an_ambiguous_commit_has_one_effect_under_its_key(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = IdempotencyKey("the-key", "hash")
    commit = type(connection._connections[connection._alias])._commit  # type: ignore[attr-defined]
    lost = iter([True])

    def commits_and_fails(self: Any) -> Any:
        commit(self)
        if next(lost, False):
            raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(type(connection._connections[connection._alias]), "_commit", commits_and_fails)
    with pytest.raises(OperationalError):
        build_door.under(once)(ctx)
    with pytest.raises(IdempotentReplay) as repeated:
        build_door.under(once)(ctx)
    with reading(ctx):
        [door] = Door.objects.all()
    assert repeated.value.result == {"doorId": str(door.id)}
    assert violations(ctx.tenant_id) == []


@pytest.mark.requirement("EVT-05")
def test_nothing_stays_behind_of_a_commit_that_is_refused(ctx: Context) -> None:
    hints: list[str] = []

    def act(ctx: Context) -> None:
        door = Door(colour="red", tenant_id=ctx.tenant_id)
        door.save(force_insert=True)  # not journaled: the deferred trigger refuses at the commit
        after_commit(lambda: hints.append("told"))

    before = counts(ctx)
    with pytest.raises(Exception, match="without a journal entry"):
        misbehave.under(IdempotencyKey("k"))(ctx, act=act)
    assert (hints, counts(ctx), active_or_none(), _open.get()) == ([], before, None, None)
    assert router.db_for_write(OutboxEvent) == router.db_for_write(Door), "One commit is for both."
    with reading(ctx):
        assert not IdempotencyRecord.objects.exists()


@pytest.mark.parametrize("sqlstate", ["40001", "40P01", "55P03"])
def test_a_transaction_that_is_tried_again_starts_from_nothing(ctx: Context, sqlstate: str) -> None:
    hints: list[int] = []
    tries: list[int] = []

    def act(ctx: Context) -> None:
        tries.append(1)
        assert open_work().entries == []
        door = Door(colour="red")
        record(ctx, door, "Built", DoorBuilt(door_id=str(door.id), colour="red"))
        after_commit(lambda: hints.append(len(tries)))
        if len(tries) < 3:
            with connection.cursor() as cursor:
                cursor.execute(f"DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '{sqlstate}'; END $$")

    misbehave(ctx, act=act)
    assert (len(tries), hints) == (3, [3])
    assert counts(ctx) == (1, 1, 1)


def test_a_key_whose_first_use_rolls_back_is_free_for_the_one_that_waited(ctx: Context) -> None:
    for key in map(str, range(20)):
        meet = threading.Barrier(2)

        def fails(ctx: Context, meet: Any = meet) -> None:
            meet.wait(10)
            raise RuntimeError("after the claim")

        def waits(key: str = key, meet: Any = meet) -> Any:
            meet.wait(10)
            return misbehave.under(IdempotencyKey(key))(ctx, act=lambda _: "done")

        first = lambda key=key: misbehave.under(IdempotencyKey(key))(ctx, act=fails)  # noqa: E731
        assert [str(answer) for answer in at_once([first, waits])] == ["after the claim", "done"]


def test_who_loses_the_race_for_a_key_waits_for_a_slow_winner(ctx: Context) -> None:
    claimed = threading.Event()

    def slow(ctx: Context) -> str:
        claimed.set()
        time.sleep(1)
        return "done"

    def loser() -> Any:
        assert claimed.wait(10)
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '80ms'")  # many of its usual waits, in little time
        return misbehave.under(IdempotencyKey("k"))(ctx, act=lambda _: "mine")

    first, second = at_once([lambda: misbehave.under(IdempotencyKey("k"))(ctx, act=slow), loser])
    assert first == "done"
    assert isinstance(second, IdempotentReplay)
    assert second.result == "done"


def test_one_key_at_once_from_many_has_one_effect(ctx: Context) -> None:
    for key in map(str, range(10)):
        answers = at_once([lambda key=key: build_door.under(IdempotencyKey(key))(ctx)] * 4)
        assert sorted(type(a).__name__ for a in answers) == ["IdempotentReplay"] * 3 + ["dict"]
        told = {str(a.result if isinstance(a, IdempotentReplay) else a) for a in answers}
        assert len(told) == 1


def test_a_fault_between_the_evidence_and_the_commit_leaves_nothing(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    door_id = build_door(ctx)["doorId"]
    before, write = counts(ctx), chain.write

    def breaks(*args: Any, **kwargs: Any) -> Any:
        write(*args, **kwargs)
        raise MemoryError

    monkeypatch.setattr(chain, "write", breaks)
    with pytest.raises(MemoryError):
        shut_door(ctx, door_id=door_id)
    assert counts(ctx) == before
    assert not transaction.get_connection().in_atomic_block


def test_a_hint_that_fails_harms_nothing_and_hides_no_end_of_a_job(ctx: Context) -> None:
    told: list[str] = []

    def act(ctx: Context, fault: Exception) -> None:
        after_commit(partial(_raise, fault))
        after_commit(lambda: told.append(type(fault).__name__))

    misbehave(ctx, act=partial(act, fault=ValueError("the broker is away")))
    assert told == ["ValueError"]
    with pytest.raises(TimeIsUp):
        misbehave(ctx, act=partial(act, fault=TimeIsUp()))
    assert told == ["ValueError"], "whose time is up begins nothing more"


def _raise(fault: Exception) -> None:
    raise fault
