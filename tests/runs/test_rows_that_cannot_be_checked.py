"""One row that cannot be checked is one violation about that row; of all others the rule speaks as ever."""

from typing import Any
from uuid import uuid4

import pytest

from factory.evidence.auditor import invariants
from tests.support.corruption import walls_down
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
    "C2": ("factory_journalentry", "factory_purge"),
    "R1": ("registry_release", "registry_asset", "registry_closure"),
}


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
    with walls_down(table, *ALSO_READ.get(code, ())) as cursor:
        damage(cursor, here, *UNCHECKABLE[name])
        damage(cursor, there, *OTHERWISE[code])
        found = {str(tenant): str(detail) for tenant, _, detail in rule.check(cursor)}
    assert here.tenant in found
    assert there.tenant in found
    assert "cannot be checked" not in found[there.tenant]
