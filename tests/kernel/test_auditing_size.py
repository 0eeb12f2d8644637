"""The auditor's memory does not grow with the evidence."""

import json
import tracemalloc
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from factory.evidence.auditor import invariants
from factory.kernel.chain import JOURNAL_CONTENT, chained, content_of
from factory.kernel.hashing import canonical
from factory.kernel.ids import uuid7
from tests.faults.rounds import rounds

from .damage import admin_url

ENTRIES, STREAMS = rounds(500) * 60, rounds(500)
"""120,000 entries at FACTORY_FAULT_ROUNDS=4; the limit of memory is the same for any number."""
MOST_BYTES = 40 * 1024 * 1024
COLUMNS = ("id", *JOURNAL_CONTENT, "prev_hash", "hash", "transaction_id")


def fill(cursor: "psycopg.Cursor[Any]", tenant: str) -> None:
    """Sound chains of painted doors, all in one uncommitted transaction."""
    cursor.execute("ALTER TABLE factory_journalentry DISABLE TRIGGER USER")
    heads = []
    with cursor.copy(f"COPY factory_journalentry ({', '.join(COLUMNS)}) FROM STDIN") as copy:
        for _ in range(STREAMS):
            stream, last = uuid4(), ""
            for sequence in range(1, ENTRIES // STREAMS + 1):
                row = {
                    "tenant_id": tenant, "stream_id": stream, "sequence": sequence, "entity": "door",
                    "entity_id": stream, "cause": "Painted", "from_state": "Open", "to_state": "Open",
                    "actor": "ada", "actor_kind": "person", "operation": "PaintDoor",
                    "correlation_id": stream, "detail": {"words": "x" * 200}, "events": [],
                    "occurred_at": "2026-01-01T00:00:00.000000Z",
                }  # fmt: skip
                hash_ = chained(last, canonical(content_of(row, JOURNAL_CONTENT)))
                row |= {"id": uuid7(), "prev_hash": last, "hash": hash_, "transaction_id": 1}
                copy.write_row(
                    [json.dumps(v) if isinstance(v, dict | list) else v for v in map(row.get, COLUMNS)]
                )
                last = hash_
            heads.append((stream, tenant, ENTRIES // STREAMS, last))
    with cursor.copy("COPY factory_chainhead (stream_id, tenant_id, sequence, hash) FROM STDIN") as copy:
        for head in heads:
            copy.write_row(head)
    cursor.execute("ANALYZE factory_journalentry; ANALYZE factory_chainhead")


@pytest.mark.slow
def test_chains_of_any_length_are_followed_in_little_memory(tenant_id: str) -> None:
    rules = {rule.code: rule for rule in invariants()}
    with psycopg.connect(admin_url()) as db, db.cursor() as cursor:
        fill(cursor, tenant_id)
        tracemalloc.start()
        for code in ("A3", "A6", "A8"):
            found = [row for row in rules[code].check(cursor) if row.tenant_id == tenant_id]  # type: ignore[arg-type]
            assert found == []
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < MOST_BYTES, f"{peak / 1024 / 1024:.0f} MiB"
        cursor.execute(
            "UPDATE factory_journalentry SET actor = 'eve' WHERE tenant_id = %s AND sequence = 7", [tenant_id]
        )
        found = [row for row in rules["A6"].check(cursor) if row.tenant_id == tenant_id]  # type: ignore[arg-type]
        assert len(found) == STREAMS
        db.rollback()
