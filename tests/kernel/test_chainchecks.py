"""A chain is recomputed for whoever looks at it, and says what is wrong with it."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from factory.evidence.chain_checks import check_chain, first_fault
from factory.kernel.chain import JOURNAL_CONTENT
from factory.kernel.models import JournalEntry
from factory.kernel.tenancy import reading
from tests.support.running import House

Rows = list[dict[str, Any]]


@pytest.fixture
def house(tenant_id: str) -> House:
    return House(tenant_id)


@pytest.fixture
def rows(house: House) -> Rows:
    run_id = house.run("single")
    with reading(house.system):
        found = JournalEntry.objects.filter(stream_id=run_id).order_by("sequence")
        return list(found.values(*JOURNAL_CONTENT, "prev_hash", "hash"))


@pytest.mark.requirement("JRN-09")
def test_a_chain_that_was_let_alone_holds_up_to_its_head(house: House) -> None:
    run_id = house.run("single")
    with reading(house.system):
        checked = check_chain("journal", run_id)
        nothing = check_chain("journal", uuid4())
    assert checked.holds
    assert checked.words.startswith(f"Intact: {checked.last} entries, gapless")
    assert (nothing.holds, nothing.words) == (True, "Nothing has been written yet.")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda rows: rows[2].update(actor="nobody"), "the content of entry 3 is not what its hash covers"),
        (lambda rows: rows[2].update(occurred_at=rows[2]["occurred_at"] + timedelta(microseconds=1)),
         "the content of entry 3 is not"),
        (lambda rows: rows[2].update(detail={"n": 10**22}), "the content of entry 3 is not what its hash"),
        (lambda rows: rows.pop(1), "entry 2 is missing"),
        (lambda rows: rows[2].update(prev_hash=rows[0]["hash"]), "entry 3 does not follow"),
        (lambda rows: rows[0].update(prev_hash="sha256:" + "0" * 64), "its first entry follows from another"),
    ],
)  # fmt: skip
def test_every_kind_of_damage_is_found_at_its_entry(rows: Rows, damage: Any, said: str) -> None:
    assert first_fault(rows, JOURNAL_CONTENT) == ""
    damage(rows)
    assert said in first_fault(rows, JOURNAL_CONTENT)
