"""One row that cannot be checked is one violation about that row; of all others the rule speaks as ever."""

from typing import Any
from uuid import uuid4

import pytest

from factory.evidence.auditor import invariants
from tests.support.corruption import found_by, walls_down
from tests.support.running import House
from tests.support.waivers import template

pytestmark = pytest.mark.slow

BIG = "10000000000000000000000"
ONE = "tenant_id = %(t)s AND ctid = (SELECT min(ctid) FROM {table} WHERE tenant_id = %(t)s)"
UNCHECKABLE = {
    "A5": ("factory_journalentry", "events = '[{{}}]'"),
    "A6": ("factory_journalentry", f"detail = detail || '{{{{\"n\": {BIG}}}}}'"),
    "A6 time": ("factory_journalentry", "occurred_at = 'infinity'"),
    "A6b": ("factory_auditentry", f"detail = '[1e400, {BIG}]'"),
    "C2": ("factory_outboxevent", f"payload = payload || '{{{{\"n\": {BIG}}}}}'"),
    "C2 time": ("factory_outboxevent", "occurred_at = '-infinity'"),
    "F2b": ("runs_snapshot", f"content = content || '{{{{\"n\": {BIG}}}}}'"),
    "B15": ("runs_runtemplate", f"limits = '{{{{\"maxMinutes\": {BIG}}}}}'"),
    "R1": ("registry_closureentry", "size = 9007199254740993"),
}
OTHERWISE = {
    "A5": ("factory_journalentry", "cause = 'Kicked'"),
    "A6": ("factory_journalentry", "actor = 'eve'"),
    "A6b": ("factory_auditentry", "actor = 'eve'"),
    "C2": ("factory_outboxevent", "payload = '{{}}'"),
    "F2b": ("runs_snapshot", "content = '{{}}'"),
    "B15": ("runs_runtemplate", "limits = '{{}}'"),
    "R1": ("registry_closureentry", "size = 1"),
}
ALSO_READ = {
    "C1": ("factory_outboxevent", "factory_purge"),
    "C2": ("factory_journalentry", "factory_outboxevent", "factory_purge"),
    "R1": ("registry_release", "registry_asset", "registry_closure"),
}

PURGE = """
INSERT INTO factory_purge (id, tenant_id, number, stream_id, kind, sequence, hash, rows, newest_at, states,
                           retention_days, purged_at, prev_hash, record_hash)
VALUES (gen_random_uuid(), %(t)s, 900001, gen_random_uuid(), 'journal', 1, '', 1, now(), {states},
        1, now(), '', '')
"""
RUNNING = (
    "state = 'Running', started_at = now(), clock_since = now(), deadline_at = now() + interval '1 hour'"
)
OF_ANOTHER_FORM = {
    "A1 key": ("factory_purge", PURGE.format(states="""'{"k": "Shut"}'""")),
    "A1 array": ("factory_purge", PURGE.format(states="'[]'")),
    "A4 key": ("factory_purge", PURGE.format(states="""'{"k": "Shut"}'""")),
    "A4 array": ("factory_purge", PURGE.format(states="'[]'")),
    "A5 object": (
        "factory_journalentry",
        """UPDATE factory_journalentry SET events = '{}' WHERE tenant_id = %(t)s AND id = (SELECT id FROM
        factory_journalentry WHERE tenant_id = %(t)s AND events <> '[]' ORDER BY id LIMIT 1)""",
    ),
    "C1 id": ("factory_journalentry", """events = '[{"id": "k"}]'"""),
    "C1 no id": ("factory_journalentry", "events = '[1]'"),
    "C1 object": ("factory_journalentry", "events = '{}'"),
    "C2 id": ("factory_journalentry", """events = '[{"id": "k"}]'"""),
    "C2 object": ("factory_journalentry", "events = '{}'"),
    "B10": ("runs_step", "node_key = 'node[k]'"),
    "B19": ("runs_run", RUNNING + """, limits = '{"maxMinutes": "long"}'"""),
    "B19 large": ("runs_run", RUNNING + """, limits = '{"maxMinutes": 10000000000000000000000}'"""),
}
"""Rules that are one query, and what a cast in it would have failed on."""


def made() -> House:
    """A house in which a run was accepted and a template made."""
    house = House(f"t-{uuid4().hex[:16]}")
    house.run()
    template(house)
    return house


@pytest.fixture(scope="module")
def houses() -> tuple[House, House]:
    return made(), made()


def damage(cursor: Any, house: House, table: str, change: str) -> None:
    where = ONE.format(table=table)
    cursor.execute(f"UPDATE {table} SET {change.format()} WHERE {where}", {"t": house.tenant})
    assert cursor.rowcount == 1


@pytest.mark.parametrize("name", UNCHECKABLE)
def test_the_rule_goes_on_behind_it(houses: tuple[House, House], name: str) -> None:
    here, there = houses
    code, table = name.split()[0], UNCHECKABLE[name][0]
    [rule] = [rule for rule in invariants() if rule.code == code]
    with walls_down(*{table, *ALSO_READ.get(code, ())}) as cursor:
        damage(cursor, here, *UNCHECKABLE[name])
        damage(cursor, there, *OTHERWISE[code])
        found = {v.tenant_id: v.detail for v in rule.check(cursor)}
    assert here.tenant in found
    assert there.tenant in found
    assert "cannot be checked" not in found[there.tenant]


@pytest.mark.parametrize("name", OF_ANOTHER_FORM)
def test_a_row_of_another_form_is_a_violation_of_its_tenant_alone(
    houses: tuple[House, House], name: str
) -> None:
    here, there = houses
    code, (table, change) = name.split()[0], OF_ANOTHER_FORM[name]
    if not change.lstrip().startswith(("INSERT", "UPDATE")):
        change = f"UPDATE {table} SET {change} WHERE {ONE.format(table=table)}"
    with walls_down(*{table, *ALSO_READ.get(code, ())}) as cursor:
        cursor.execute(change, {"t": here.tenant})
        assert cursor.rowcount == 1
        assert found_by(code, cursor, here.tenant)
        assert not found_by(code, cursor, there.tenant)


def test_the_same_damage_of_two_tenants_is_told_to_each(houses: tuple[House, House]) -> None:
    with walls_down("factory_journalentry") as cursor:
        for house in houses:
            cursor.execute(
                "UPDATE factory_journalentry SET cause = 'Kicked' WHERE tenant_id = %s", [house.tenant]
            )
        assert all(found_by("A5", cursor, house.tenant) for house in houses)


def test_a_published_release_is_judged_whatever_its_evaluation_holds(houses: tuple[House, House]) -> None:
    here, there = houses
    with walls_down("registry_evaluationrecord", "registry_release", "registry_closure") as cursor:
        for change in ("""scores = '{}', thresholds = '{"k": "much"}'""", "thresholds = '[]'"):
            where = ONE.format(table="registry_evaluationrecord")
            cursor.execute(f"UPDATE registry_evaluationrecord SET {change} WHERE {where}", {"t": here.tenant})
            assert found_by("R3", cursor, here.tenant)
            assert not found_by("R3", cursor, there.tenant)
