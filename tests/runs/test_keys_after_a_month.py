"""An Idempotency-Key lives as long as its run; another that was forgotten is a new one, and never a fault."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import IntegrityError, connection

from factory.api.problems import problem_of
from factory.evidence import retention
from factory.kernel.commanding import Command, commands
from factory.kernel.errors import AlreadyThere, IdempotencyConflict
from registry.commands import revoke_release
from runs.commands import start_run
from runs.rest.submissions import submit
from tests.kernel.damage import admin_url
from tests.security.scene import BODIES, Scene, build, routes
from tests.security.test_input_corpus import send
from tests.support.aging import age
from tests.support.api import Api, problem
from tests.support.evidence import violations
from tests.support.running import House

pytestmark = pytest.mark.slow
ENDS = ("Kill", "Suspend", "Resume", "Revoke", "Deprecate", "Retire", "Cancel", "Disable")
"""After these little else can be done: they come last."""
RUNS, KEY = "/factory/runs", "monthly-report"
AGED = "UPDATE factory_idempotencyrecord SET created_at = created_at - interval '400 days'"


def records(sql: str, tenant: str, key: str = KEY) -> int:
    """How many idempotency records a statement of the administrator was about."""
    with psycopg.connect(admin_url()) as db:
        db.execute("ALTER TABLE factory_idempotencyrecord DISABLE TRIGGER USER")
        count = db.execute(f"{sql} WHERE tenant_id = %s AND key = %s", [tenant, key]).rowcount  # type: ignore[arg-type]
        db.execute("ALTER TABLE factory_idempotencyrecord ENABLE ALWAYS TRIGGER pinned_columns")
    return count


def ended(house: House) -> tuple[Api, dict[str, Any]]:
    """A run that was submitted under the key and has ended, with its first answer."""
    api = Api.as_(house.world.requester)
    body = api.post(RUNS, house.payload(), Idempotency_Key=KEY).json()
    start_run(house.system, run_id=UUID(body["runId"]))
    hand = house.hand()
    hand.report(hand.take(), output={})
    assert house.state(UUID(body["runId"])) == "Completed"
    return api, body


@pytest.mark.requirement("API-06")
@pytest.mark.parametrize("purged_before", [False, True])
def test_a_submission_is_answered_as_at_first_however_late_it_is_repeated(
    own_database: str, tenant_id: str, purged_before: bool
) -> None:
    house = House(tenant_id)
    api, first = ended(house)
    age(UUID(first["runId"]), 400)
    assert records(AGED, tenant_id) == 1
    if purged_before:  # as releases before this one did
        assert records("DELETE FROM factory_idempotencyrecord", tenant_id) == 1
    assert retention.purge().failed == 0
    again = api.post(RUNS, house.payload(), Idempotency_Key=KEY)
    assert (again.status_code, again["Idempotent-Replayed"], again.json()) == (202, "true", first)
    other = api.post(RUNS, house.payload(input={"repository": "other"}), Idempotency_Key=KEY)
    assert (other.status_code, problem(other)["type"]) == (409, "/factory/problems/idempotency-conflict")
    assert len(api.get(RUNS).json()["items"]) == 1
    assert violations(tenant_id) == []


def test_a_submission_whose_record_is_kept_is_answered_although_its_release_was_revoked(
    own_database: str, tenant_id: str
) -> None:
    house = House(tenant_id)
    api, first = ended(house)
    age(UUID(first["runId"]), 400)
    assert records(AGED, tenant_id) == 1
    assert retention.purge().failed == 0
    revoke_release(house.world.tenant_admin, release_id=house.release, reason="old", in_flight="drain")
    assert api.post(RUNS, house.payload(), Idempotency_Key=KEY).json() == first


def test_the_records_of_other_commands_go_after_their_days(own_database: str, tenant_id: str) -> None:
    house = House(tenant_id)
    api = Api.as_(house.world.tenant_admin)
    body = {"url": "https://hooks.example.com/new"}
    first = api.post("/factory/subscriptions/webhooks", body, Idempotency_Key=KEY)
    assert first.status_code == 201, first.content
    records("UPDATE factory_idempotencyrecord SET created_at = created_at - interval '31 days'", tenant_id)
    assert retention.purge().idempotency == 1
    later = api.post("/factory/subscriptions/webhooks", body, Idempotency_Key=KEY)
    assert (later.status_code, "Idempotent-Replayed" in later) == (201, False)
    assert later.json() != first.json()


def test_no_repeat_of_anything_after_its_record_is_gone_is_a_fault(own_database: str) -> None:
    scene = build()
    told = {}
    writes = [(r, m) for r in routes() for m, name in r.operations.items() if name in BODIES]
    for route, method in sorted(writes, key=lambda each: each[0].operations[each[1]].startswith(ENDS)):
        told[route.operations[method]] = _twice(scene, route, method)
    assert len(told) > 30
    assert {name: codes for name, codes in told.items() if max(codes) >= 500} == {}


def _twice(scene: Scene, route: Any, method: str) -> tuple[int, int]:
    home, operation = scene.home, route.operations[method]
    body, key = BODIES[operation](home, home.ids), f"once-{operation}-{method}"
    first = send(home, route, method, body, Idempotency_Key=key)
    records("DELETE FROM factory_idempotencyrecord", home.tenant, key)
    again = send(home, route, method, body, Idempotency_Key=key)
    return first.status_code, again.status_code


def test_what_is_there_once_is_refused_and_not_a_fault(house: House) -> None:
    """Any command: one that no guard keeps from making a second of what the database has once."""

    def again(ctx: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO projects_tenant SELECT * FROM projects_tenant")

    def lost(ctx: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE projects_tenant SET name = NULL")

    with pytest.raises(AlreadyThere, match="projects_tenant_pkey") as refused:
        made(again)(house.system)
    assert (problem_of(refused.value).status, problem_of(refused.value).code) == (409, "already-there")
    with pytest.raises(IntegrityError):
        made(lost)(house.system)


@pytest.mark.parametrize("table", ["factory_chainhead", "factory_journalentry"])
def test_evidence_that_is_there_twice_is_a_fault_and_no_refusal(house: House, table: str) -> None:
    """Nobody chose its keys: a second one means that a chain is damaged."""

    def again(ctx: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {table} SELECT * FROM {table}")

    with pytest.raises(IntegrityError, match=table):
        made(again)(house.system)


def made(body: Callable[[Any], None]) -> Command[Any, Any]:
    """A command of the house's own name, with another body."""
    return Command("OnboardTenant", body, audited=True, strict=False)


def test_the_same_key_with_another_request_is_refused_by_the_run_itself(house: House) -> None:
    submit(house.world.requester, payload=house.payload(), key=KEY)
    records("DELETE FROM factory_idempotencyrecord", house.tenant)
    with pytest.raises(IdempotencyConflict):
        submit(house.world.requester, payload=house.payload(input={"repository": "y"}), key=KEY)
    assert "OnboardTenant" in commands()
