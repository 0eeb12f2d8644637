"""Each invariant of money finds the damage that it is there for, and nothing where there is none."""

from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection

from factory.evidence.auditor import invariants
from factory.kernel.tenancy import bound
from tests.support.corruption import found_by, walls_down
from tests.usage.money_world import Money, costing, receipt
from usage.commands import settle_hold

pytestmark = pytest.mark.slow

TABLES = [
    f"usage_{name}"
    for name in (
        "budget",
        "ledgerentry",
        "pricingrevision",
        "reservation",
        "reservationhold",
        "usagerecord",
        "usagesum",
    )
]


@pytest.fixture(scope="module")
def books(ours: Money) -> dict[str, Any]:
    """A budget with a live reservation, a settled one with known usage, and one with unknown usage."""
    budget = ours.budget("100")
    live = ours.reserve("4")
    extended = ours.dispatched("3")
    ours.extend(extended, "5")
    settled, unknown, freed = (ours.dispatched("10") for _ in range(3))
    ours.receive(settled, [receipt(), costing("2")])
    ours.receive(unknown, [costing("1"), receipt(quantities=None)])
    ours.receive(freed, [receipt(quantities=None)])
    for run_id in (settled, unknown, freed):
        ours.settle(run_id)
    hold = ours.reservation(freed)
    assert hold is not None
    settle_hold(ours.world.finance, reservation_id=hold.id, reason="Nobody knows", evidence="A ticket")
    return {
        "budget": budget,
        "live": live.run_id,
        "settled": settled,
        "unknown": unknown,
        "freed": freed,
        "extended": extended,
    }


LEDGER = "UPDATE usage_ledgerentry SET {} WHERE budget_id = %(budget)s AND "
DAMAGE = [
    ("E1a", "UPDATE usage_budget SET available = available + 1, amount = amount + 1 WHERE id = %(budget)s"),
    (
        "E1a",
        "UPDATE usage_budget SET committed = committed + 1, available = available - 1 WHERE id = %(budget)s",
    ),
    ("E1a", "UPDATE usage_budget SET entries = entries + 1 WHERE id = %(budget)s"),
    ("E1a", "DELETE FROM usage_ledgerentry WHERE budget_id = %(budget)s"),
    ("E1b", "UPDATE usage_reservation SET amount = amount + 1 WHERE run_id = %(live)s"),
    ("E1b", "UPDATE usage_reservation SET spent = spent - 1 WHERE run_id = %(settled)s"),
    ("E1b", "UPDATE usage_reservation SET held = 0 WHERE run_id = %(unknown)s"),
    ("E1b", "UPDATE usage_budget SET spent = spent - 1, available = available + 1 WHERE id = %(budget)s"),
    ("E1c", LEDGER.format("amount = -1000") + "movement = 'Reserved' AND account = 'available'"),
    ("E1c", LEDGER.format("amount = 3") + "sequence = 2"),
    ("E1b", "UPDATE usage_reservation SET extended = 0 WHERE run_id = %(extended)s"),
    ("E1c", LEDGER.format("amount = -1000") + "movement = 'Extended' AND account = 'available'"),
    ("E2d", "UPDATE usage_reservation SET extended = extended + 1 WHERE run_id = %(extended)s"),
    ("E2d", LEDGER.format("movement = 'Adjusted'") + "movement = 'Extended'"),
    ("E3b", "UPDATE usage_reservation SET extended = 1 WHERE run_id = %(unknown)s"),
    (
        "E2a",
        "INSERT INTO usage_reservation SELECT (jsonb_populate_record(r, "
        "jsonb_build_object('id', gen_random_uuid()))).* FROM usage_reservation r WHERE run_id = %(live)s",
    ),
    ("E2b", "DELETE FROM usage_reservationhold WHERE budget_id = %(budget)s"),
    (
        "E2b",
        "UPDATE usage_reservation SET created_at = created_at - interval '2 months' WHERE run_id = %(live)s",
    ),
    ("E2b", "UPDATE usage_reservation SET state = 'Denied' WHERE run_id = %(live)s"),
    (
        "E2b",
        "INSERT INTO usage_budget SELECT (jsonb_populate_record(b, jsonb_build_object('id', "
        "gen_random_uuid(), 'project_id', NULL))).* FROM usage_budget b WHERE id = %(budget)s",
    ),
    ("E3a", "UPDATE usage_usagerecord SET cost = cost + 1 WHERE run_id = %(settled)s AND cost = 2"),
    ("E3a", "DELETE FROM usage_usagerecord WHERE run_id = %(settled)s"),
    ("E3b", "UPDATE usage_usagerecord SET state = 'Estimated' WHERE run_id = %(unknown)s"),
    ("E3b", "UPDATE usage_reservation SET held = held + 1 WHERE run_id = %(settled)s"),
    (
        "E3b",
        "UPDATE usage_reservation SET hold_ended_at = 'infinity' WHERE run_id = %(unknown)s",
    ),
    (
        "E3b",
        "UPDATE usage_usagerecord SET recorded_at = 'infinity' WHERE run_id = %(freed)s",
    ),
    (
        "E3d",
        "UPDATE usage_reservation SET hold_ended_at = 'infinity' WHERE run_id = %(unknown)s",
    ),
    ("E3d", "UPDATE usage_reservation SET hold_ended_at = NULL WHERE run_id = %(freed)s"),
    ("E3d", LEDGER.format("movement = 'Adjusted'") + "movement = 'HoldEnded'"),
    ("E3c", "UPDATE usage_usagerecord SET cost = cost * 2 WHERE run_id = %(settled)s"),
    (
        "E3c",
        "UPDATE usage_usagerecord SET quantities = jsonb_set(quantities, '{calls}', '\"2\"') "
        "WHERE run_id = %(settled)s AND quantities IS NOT NULL",
    ),
    (
        "E3c",
        "UPDATE usage_usagerecord SET quantities = jsonb_set(quantities, '{calls}', '\"many\"') "
        "WHERE run_id = %(settled)s AND quantities IS NOT NULL",
    ),
    (
        "E4e",
        "UPDATE usage_usagerecord SET quantities = jsonb_set(quantities, '{inputTokens}', '\"many\"') "
        "WHERE run_id = %(settled)s AND quantities IS NOT NULL",
    ),
    (
        "E3c",
        "UPDATE usage_pricingrevision SET valid_from = valid_from + interval '1 day' WHERE id IN "
        "(SELECT pricing_revision_id FROM usage_usagerecord WHERE run_id = %(settled)s)",
    ),
    ("E4a", LEDGER.format("amount = amount + 1") + "sequence = 3"),
    ("E4a", "DELETE FROM usage_ledgerentry WHERE budget_id = %(budget)s AND sequence = 4"),
    ("E4b", "DELETE FROM usage_ledgerentry WHERE budget_id = %(budget)s AND sequence IN (3, 4)"),
    ("E4b", "DELETE FROM usage_ledgerentry WHERE budget_id = %(budget)s AND sequence = 1"),
    ("E4b", LEDGER.format("balance = balance + 1") + "sequence = 5"),
    (
        "E4c",
        "INSERT INTO usage_usagerecord SELECT (jsonb_populate_record(u, jsonb_build_object('id', "
        "gen_random_uuid()))).* FROM usage_usagerecord u WHERE run_id = %(settled)s",
    ),
    ("E4d", LEDGER.format("movement = 'Adjusted'") + "movement = 'Settled'"),
    ("E4d", LEDGER.format("movement = 'Adjusted'") + "movement = 'Reserved'"),
    ("E4d", "UPDATE usage_reservation SET state = 'Reserved' WHERE run_id = %(settled)s"),
    ("E4e", "UPDATE usage_usagesum SET cost = cost + 1 WHERE run_id = %(settled)s"),
    ("E4e", "UPDATE usage_usagesum SET day = day - 1 WHERE run_id = %(settled)s"),
    ("E4e", "DELETE FROM usage_usagesum WHERE run_id = %(unknown)s"),
    ("E4e", "DELETE FROM usage_usagerecord WHERE run_id = %(unknown)s AND cost = 1"),
]


@pytest.mark.parametrize(
    ("code", "damage"), DAMAGE, ids=[f"{code}-{n}" for n, (code, _) in enumerate(DAMAGE)]
)
def test_finds_the_damage(ours: Money, books: dict[str, Any], code: str, damage: str) -> None:
    with walls_down(*TABLES) as cursor:
        assert found_by(code, cursor, ours.world.tenant) == []
        cursor.execute(damage, books)
        assert cursor.rowcount >= 1
        assert found_by(code, cursor, ours.world.tenant) != []


def test_every_invariant_of_money_is_proved() -> None:
    declared = {rule.code for rule in invariants() if rule.code.startswith("E")}
    elsewhere = {"E2c", "E2e", "E4f", "E4g", "E4h", "E4i"}  # which need runs
    assert declared == {code for code, _ in DAMAGE} | elsewhere


REFUSED = [
    "UPDATE usage_ledgerentry SET amount = 1",
    "DELETE FROM usage_ledgerentry",
    "TRUNCATE usage_ledgerentry",
    "UPDATE usage_usagerecord SET cost = 0",
    "DELETE FROM usage_usagerecord",
    "UPDATE usage_usagerecord SET quantities = NULL",
    "UPDATE usage_usagerecord SET state = 'Confirmed', cost = 1 WHERE state = 'Uncertain'",
    "DELETE FROM usage_reservation",
    "UPDATE usage_reservation SET amount = 0",
    "UPDATE usage_pricingrevision SET document = '{}'",
    "UPDATE usage_budget SET period_start = '2020-01-01'",
    "UPDATE usage_budget SET available = available + 1",
    "UPDATE usage_reservation SET state = 'Settled'",
]


@pytest.mark.parametrize("statement", REFUSED)
def test_the_application_itself_cannot_do_the_damage(
    ours: Money, books: dict[str, Any], statement: str
) -> None:
    with pytest.raises(DatabaseError), bound(ours.ctx), connection.cursor() as cursor:
        cursor.execute(statement)


def test_an_unbalanced_transaction_is_refused_at_its_commit(ours: Money, books: dict[str, Any]) -> None:
    one_sided = (
        "INSERT INTO usage_ledgerentry SELECT (jsonb_populate_record(l, jsonb_build_object('id', "
        "gen_random_uuid(), 'transaction_id', gen_random_uuid(), 'sequence', 99))).* "
        "FROM usage_ledgerentry l WHERE budget_id = %(budget)s AND sequence = 1"
    )
    with pytest.raises(IntegrityError, match="is off by"), bound(ours.ctx), connection.cursor() as cursor:
        cursor.execute(one_sided, books)


@pytest.mark.parametrize("movement", ["Reserved", "Extended"])
def test_nothing_is_set_aside_that_the_budget_does_not_have(
    ours: Money, books: dict[str, Any], movement: str
) -> None:
    overdrawn = (
        "INSERT INTO usage_ledgerentry SELECT (jsonb_populate_record(l, jsonb_build_object('id', "
        "gen_random_uuid(), 'sequence', 99, 'movement', %(movement)s::text, 'balance', -1))).* "
        "FROM usage_ledgerentry l WHERE budget_id = %(budget)s AND account = 'available' LIMIT 1"
    )
    with (
        pytest.raises(IntegrityError, match="no_overdraft"),
        bound(ours.ctx),
        connection.cursor() as cursor,
    ):
        cursor.execute(overdrawn, books | {"movement": movement})
