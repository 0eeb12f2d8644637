"""A reconciler repairs each due item in its own tenant, and one faulty row stops no other."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.core.management import call_command
from django.db import OperationalError
from psycopg import errors
from structlog.testing import capture_logs

from config.celery import reconcile
from factory.kernel.absence import put_off
from factory.kernel.commanding import IdempotentReplay
from factory.kernel.context import Context
from factory.kernel.locking import lock
from factory.kernel.reconciling import Counts, DueItem, Reconciler, _reconcilers, register_reconciler
from factory.kernel.recording import record
from factory.kernel.tenancy import reading

from .conftest import operator
from .doors.acts import build_door, misbehave, shut_door
from .doors.models import Door


class OpensDoors(Reconciler):
    """Opens what is shut; refuses to touch one door of a test."""

    name = "OpensDoors"
    every = "* * * * *"
    batch = 3
    broken: UUID | None = None

    def find_sql(self) -> str:
        return "SELECT shut_at AS due_at, id, tenant_id, '' AS key FROM doors_door WHERE state = 'Shut'"

    def repair(self, ctx: Context, due: DueItem) -> None:
        if due.id == self.broken:
            raise RuntimeError("this row is faulty")

        def pull(inner: Context) -> None:
            door = lock(Door, due.id)
            door.pull()
            record(inner, door, "Pulled")

        misbehave(replace(ctx), act=pull)


register_reconciler(OpensDoors)


@pytest.fixture
def reconciler() -> Iterator[OpensDoors]:
    yield OpensDoors()
    OpensDoors.broken = None


def shut_doors(ctx: Context, count: int) -> list[UUID]:
    doors = [UUID(build_door(ctx)["doorId"]) for _ in range(count)]
    for door_id in doors:
        shut_door(ctx, door_id=door_id)
    return doors


def test_repairs_everything_that_is_due_across_batches(ctx: Context, reconciler: OpensDoors) -> None:
    shut_doors(ctx, 8)
    counts = reconciler.run_once(ctx.tenant_id)
    assert (counts.found, counts.repaired) == (8, 8)
    assert reconciler.run_once(ctx.tenant_id).found == 0
    with reading(ctx):
        assert not Door.objects.filter(state="Shut").exists()


@pytest.mark.requirement("JOB-15")
def test_one_faulty_row_stops_no_other(ctx: Context, reconciler: OpensDoors) -> None:
    doors = shut_doors(ctx, 5)
    OpensDoors.broken = doors[1]
    counts = reconciler.run_once(ctx.tenant_id)
    assert (counts.found, counts.repaired, counts.failed) == (5, 4, 1)


def test_no_item_is_begun_after_a_rounds_time_or_after_the_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    at, begun = [0.0], []

    def repair(self: OpensDoors, ctx: Context, due: DueItem) -> None:
        begun.append(due)
        at[0] += 10
        if len(begun) > 3:
            raise SoftTimeLimitExceeded

    dues = [DueItem(datetime.now(UTC), uuid4(), "t") for _ in range(OpensDoors.batch)]
    monkeypatch.setattr(OpensDoors, "find", lambda *_: dues)
    monkeypatch.setattr(OpensDoors, "repair", repair)
    monkeypatch.setattr("factory.kernel.reconciling.time.monotonic", lambda: at[0])
    assert OpensDoors().run_once(seconds=15).repaired == len(begun) == 2
    with pytest.raises(SoftTimeLimitExceeded):
        OpensDoors().run_once()
    assert len(begun) == 4


def test_works_each_item_in_its_own_tenant(ctx: Context, reconciler: OpensDoors) -> None:
    other = operator(f"{ctx.tenant_id}-x")
    shut_doors(ctx, 1)
    shut_doors(other, 1)
    reconciler.run_once()
    for each in (ctx, other):
        with reading(each):
            assert [d.state for d in Door.objects.all()] == ["Open"]


def test_is_registered_by_its_name() -> None:
    assert isinstance(_reconcilers["OpensDoors"], OpensDoors)


def test_what_was_done_before_is_no_failure(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    def repair(self: OpensDoors, ctx: Context, due: DueItem) -> None:
        raise IdempotentReplay(None)

    shut_doors(ctx, 1)
    monkeypatch.setattr(OpensDoors, "repair", repair)
    counts = OpensDoors().run_once(ctx.tenant_id)
    assert (counts.found, counts.repaired, counts.failed) == (1, 1, 0)


def test_the_loop_outlives_a_database_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    class Away(Exception):
        pass

    rounds: list[int] = []

    def round_(self: OpensDoors, tenant_id: str | None = None) -> Counts:
        rounds.append(1)
        if len(rounds) == 1:
            raise OperationalError("the database is away")
        return Counts()

    def sleep(seconds: float) -> None:
        if len(rounds) == 2:
            raise Away

    monkeypatch.setattr(OpensDoors, "run_once", round_)
    monkeypatch.setattr("factory.management.commands.reconcile.time.sleep", sleep)
    with pytest.raises(Away):
        call_command("reconcile", "OpensDoors", "--loop")
    rounds.clear()
    with pytest.raises(OperationalError):
        call_command("reconcile", "OpensDoors")


@pytest.mark.parametrize("fault", [errors.ConnectionTimeout, errors.AdminShutdown, None])
def test_a_round_against_a_database_that_is_away_ends_in_one_line(
    ctx: Context, monkeypatch: pytest.MonkeyPatch, fault: type[Exception] | None
) -> None:
    """A job that fails has its traceback printed, once for each reconciler and minute of an outage."""
    tries: list[UUID] = []

    def repair(self: OpensDoors, ctx: Context, due: DueItem) -> None:
        tries.append(due.id)
        raise OperationalError("refused:\nis it running?") from (fault("gone") if fault else None)

    shut_doors(ctx, 3)
    with monkeypatch.context() as patched, capture_logs() as told:
        patched.setattr(OpensDoors, "repair", repair)
        assert reconcile(name="OpensDoors") is None
    assert len(tries) == 2, "one item alone may have broken its connection; two have not"
    assert [line for line in told if "exc_info" in line] == []
    assert (told[-1]["event"], told[-1]["fault"]) == ("job_put_off", "refused: is it running?")
    assert OpensDoors().run_once(ctx.tenant_id).repaired == 3, "the next tick finds the same work"


@pytest.mark.parametrize("fault", [ValueError("wrong"), OperationalError("locked")])
def test_what_is_wrong_is_no_outage(fault: Exception) -> None:
    fault.__cause__ = errors.LockNotAvailable()
    with pytest.raises(type(fault)), put_off("reconcile"):
        raise fault
