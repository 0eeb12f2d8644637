"""The tables of attempts and leases as they are, who dispatches, and what makes it soon."""

import pytest
from django.db import connection

import usage.states as usage
from config.celery import app, schedule_of
from factory.kernel.reconciling import reconcilers
from factory.kernel.tenancy import scanning
from factory.messaging.relay.handlers import handlers
from runs.models import Attempt, Lease
from runs.reconcilers import LeaseExpiryReconciler
from runs.states import ATTEMPT_OUTCOME_RECORDED, LEASE_EXPIRED
from tests.support.evidence import audits
from tests.support.running import House


def columns(table: str) -> dict[str, bool]:
    """Each column, and whether it may be null."""
    with connection.cursor() as cursor:
        return {c.name: c.null_ok for c in connection.introspection.get_table_description(cursor, table)}


def indexes(table: str) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexname FROM pg_indexes WHERE tablename = %s", [table])
        return {name for (name,) in cursor.fetchall()}


@pytest.mark.requirement("ATT-01", "ATT-15", "LSE-01", "LSE-10")
def test_the_columns_and_indexes_are_those_that_were_asked_for(own_database: str) -> None:
    attempt, lease = columns(Attempt._meta.db_table), columns(Lease._meta.db_table)
    must = {"id", "step_id", "tenant_id", "number", "dispatched_at", "state"}
    assert {name for name in must if attempt[name]} == set()
    assert {name for name in ("lease_id", "settled_at") if not attempt[name]} == set()
    assert {"outcome_hash", "failure_class"} <= set(attempt)
    must = {"id", "attempt_id", "tenant_id", "holder", "expires_at", "fencing_token"}
    assert {name for name in must if lease[name]} == set()
    assert {"attempt_by_step", "attempt_parked", "attempt_open"} <= indexes(Attempt._meta.db_table)
    assert {"lease_due", "lease_of_worker", "lease_by_attempt"} <= indexes(Lease._meta.db_table)
    due = LeaseExpiryReconciler().find_sql()
    with scanning() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {due}")
        assert "lease_due" in " ".join(line for (line,) in cursor.fetchall())


@pytest.mark.requirement("ATT-07", "ATT-08", "ATT-12", "DSP-12")
def test_tries_are_numbered_timed_and_leased_anew_by_the_dispatcher(house: House) -> None:
    run_id, worker = house.run(), house.hand()
    worker.fail(worker.take())
    house.make_due(run_id)
    worker.report(worker.take(), output=1)
    first, second = house.attempts(run_id)
    assert (first.number, second.number) == (1, 2)
    assert all(each.settled_at >= each.dispatched_at for each in (first, second))
    one, two = house.leases(run_id)
    assert (one.state, two.state, one.id != two.id) == ("Settled", "Settled", True)
    assert two.fencing_token > one.fencing_token
    from factory.kernel.models import JournalEntry
    from factory.kernel.tenancy import reading

    with reading(house.system):
        [began] = JournalEntry.objects.filter(stream_id=run_id, cause="FirstAttemptDispatched")
    assert (began.from_state, began.to_state, began.actor) == ("Accepted", "Running", "system:RunDispatcher")
    assert audits(house.system, "DispatchStep") == []


@pytest.mark.parametrize(
    ("name", "line"),
    [
        pytest.param(
            "LeaseExpiryReconciler", "*/1 * * * *", marks=pytest.mark.requirement("LSE-13", "JOB-07")
        ),
        pytest.param("ApprovalExpiryReconciler", "*/5 * * * *", marks=pytest.mark.requirement("JOB-08")),
        pytest.param(
            "DelegationExpiryReconciler", "*/10 * * * *", marks=pytest.mark.requirement("JOB-05", "PRJ-13")
        ),
        pytest.param("ReservationExpiryWorker", "*/15 * * * *", marks=pytest.mark.requirement("JOB-03")),
    ],
)
def test_each_of_them_ticks_by_one_schedule_and_as_often_as_was_promised(name: str, line: str) -> None:
    ticks = [each for each in app.conf.beat_schedule.values() if each.get("kwargs") == {"name": name}]
    assert [each["schedule"] for each in ticks] == [schedule_of(line)]


@pytest.mark.requirement("JOB-10")
def test_every_reconciler_is_on_the_schedule_in_utc() -> None:
    told = {each["kwargs"]["name"]: each for each in app.conf.beat_schedule.values() if "kwargs" in each}
    house = {name for name, each in reconcilers().items() if not type(each).__module__.startswith("tests")}
    assert house <= set(told)
    assert {told[name]["task"] for name in house} == {"factory.reconcile"}
    assert all(told[name]["schedule"] == schedule_of(reconcilers()[name].every) for name in house)
    assert (app.conf.timezone, app.conf.enable_utc) == ("UTC", True)


@pytest.mark.requirement("DSP-04", "JOB-09")
def test_money_and_outcomes_wake_the_dispatcher_and_nothing_else_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    woken: list[str] = []
    monkeypatch.setattr("runs.handlers.publish", woken.append)
    [wakes] = [each for each in handlers(ATTEMPT_OUTCOME_RECORDED) if each.name == "runs.wake_the_pollers"]
    wakes.handle(None, None)  # type: ignore[arg-type]  # it reads nothing of them
    assert woken == ["work"]
    assert any("reservation" in each.name for each in handlers(usage.BUDGET_RESERVED))
    assert [each.name for each in handlers(LEASE_EXPIRED)] == []
