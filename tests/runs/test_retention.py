"""Evidence goes when its time is over, by a role of its own; what goes leaves a record, and no doubt."""

import threading
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, connections, transaction

from factory.evidence import retention
from factory.evidence.anchors.taking import take
from factory.kernel.chain import audit_stream
from factory.kernel.models import Purge
from factory.kernel.tenancy import bound, reading
from tests.kernel.damage import corrupt
from tests.support.aging import age
from tests.support.evidence import violations
from tests.support.running import House
from tests.support.threads import at_once

pytestmark = pytest.mark.slow

JOURNAL = 365


@pytest.fixture(autouse=True)
def folder(own_database: str, tmp_path: Path, settings: Any) -> None:
    """A database of the test alone too: the records of purges are one chain over all tenants."""
    settings.FACTORY_ANCHORS_DIR = str(tmp_path / "anchors")
    settings.FACTORY_ANCHOR_KEY_FILE = str(tmp_path / "key.pem")


def ended(house: House) -> UUID:
    run_id = house.run()
    hand = house.hand()
    hand.report(hand.take(), output={})
    assert house.state(run_id) == "Completed"
    return run_id


def sequences(house: House, table: str, stream: UUID) -> list[int]:
    with reading(house.system), connection.cursor() as cursor:
        cursor.execute(f"SELECT sequence FROM {table} WHERE stream_id = %s ORDER BY 1", [stream])
        return sorted({n for (n,) in cursor.fetchall()})


@pytest.mark.requirement("JRN-07")
def test_entries_of_366_days_go_and_those_of_364_stay(house: House) -> None:
    mixed, old, going_on = ended(house), ended(house), house.run()
    age(mixed, JOURNAL - 1, first=4, first_days=JOURNAL + 1)
    age(old, JOURNAL + 1)
    age(going_on, JOURNAL + 1)
    open_before = sequences(house, "factory_journalentry", going_on)
    every = sequences(house, "factory_journalentry", mixed)
    take()
    out = StringIO()
    call_command("purge", stdout=out)
    assert sequences(house, "factory_journalentry", mixed) == every[4:]
    assert sequences(house, "factory_outboxevent", mixed) == []  # delivered events are kept for a month
    assert sequences(house, "factory_journalentry", old) == []
    assert sequences(house, "factory_auditentry", audit_stream(old)) == []
    assert sequences(house, "factory_journalentry", going_on) == open_before
    assert violations(house.tenant) == []
    take()
    call_command("purge", stdout=out)
    assert out.getvalue().splitlines()[-1].startswith("removed: 0 journal, 0 audit, 0 outbox")
    _a_purge_is_no_cloak(house, mixed, old)


def test_two_purges_at_once_remove_once_and_what_is_empty_is_left_alone(
    house: House, monkeypatch: Any
) -> None:
    old, real, seen, both = ended(house), retention._remove, list[UUID](), threading.Barrier(2)
    age(old, JOURNAL + 1)

    def remove(cursor: Any, record: Any, table: str) -> int:
        with suppress(threading.BrokenBarrierError):
            both.wait(0.5)  # where the other one would remove the same, if it could come here
        seen.append(record["stream_id"])
        return real(cursor, record, table)

    monkeypatch.setattr(retention, "_remove", remove)
    answers = at_once([retention.purge, retention.purge])
    assert [fault for fault in answers if isinstance(fault, Exception)] == []
    assert seen.count(old) == 2  # journal and events
    assert violations(house.tenant) == []
    visited: list[UUID] = []
    monkeypatch.setattr(retention, "_purge_stream", lambda stream, *rest: visited.append(stream))
    retention.purge()
    assert old not in visited


def _a_purge_is_no_cloak(house: House, mixed: UUID, old: UUID) -> None:
    """What a purge removed and what somebody else removed are told apart."""

    def found(code: str, sql: str, *params: Any) -> bool:
        return bool(corrupt(code, [(sql, params)], tenant_id=house.tenant))

    more = "DELETE FROM factory_journalentry WHERE stream_id = %s AND sequence = 5"
    assert found("A3", more, mixed)
    assert found("A6", more, mixed)
    assert found("A1", "UPDATE factory_purge SET states = '{}' WHERE stream_id = %s", old)
    assert found("A1", "UPDATE runs_run SET state = 'Failed', failure_class = 'budget', output_hash = '' "
                 "WHERE id = %s", old)  # fmt: skip
    forged = "UPDATE factory_purge SET sequence = sequence + 1 WHERE stream_id = %s AND kind = 'journal'"
    assert found("A9", forged, mixed)
    assert found("A9", "DELETE FROM factory_purge WHERE stream_id = %s AND kind = 'outbox'", mixed)
    assert found("A9", "UPDATE factory_purge SET newest_at = purged_at WHERE stream_id = %s", old)
    assert found("A7", "DELETE FROM factory_purge WHERE tenant_id = %s", house.tenant)


def test_the_application_may_neither_purge_nor_record_a_purge(house: House, settings: Any) -> None:
    run_id = ended(house)
    age(run_id, JOURNAL + 1)
    acts = (
        "DELETE FROM factory_journalentry",
        "DELETE FROM factory_auditentry",
        "DELETE FROM factory_outboxevent",
        "DELETE FROM factory_idempotencyrecord",
        f"SET ROLE {settings.FACTORY_ROLE_PREFIX}_retention",
    )
    for act in acts:
        with pytest.raises(DatabaseError, match="denied"), bound(house.system), connection.cursor() as cursor:
            cursor.execute(act)
    with pytest.raises(DatabaseError, match="denied"), bound(house.system):
        Purge.objects.create(
            tenant_id=house.tenant, number=1, stream_id=run_id, kind="journal", sequence=1, rows=1,
            newest_at="2020-01-01T00:00Z", retention_days=1, purged_at="2026-01-01T00:00Z",
        )  # fmt: skip


def test_even_the_retention_role_removes_nothing_that_is_young_and_changes_nothing(house: House) -> None:
    run_id = house.run()
    for act in (
        "DELETE FROM factory_journalentry WHERE stream_id = %s",
        "UPDATE factory_journalentry SET actor = 'eve' WHERE stream_id = %s",
        "UPDATE runs_run SET state = 'Failed' WHERE id = %s",
        "SELECT input_hash FROM runs_run WHERE id = %s",
    ):
        with (
            pytest.raises(DatabaseError, match=r"denied|evidence"),
            transaction.atomic(using="retention"),
            connections["retention"].cursor() as cursor,
        ):
            cursor.execute(act, [run_id])
