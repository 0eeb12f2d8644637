"""What the policy says of an action happens to it: explain and enforcement, by class and environment."""

from copy import deepcopy
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from approvals.commands import publish_policy_revision
from approvals.operations import PolicyDenied
from approvals.policy.document import platform_default
from approvals.selectors import current_policy, explain
from factory.kernel.errors import InvalidInput
from factory.kernel.tenancy import reading
from runs.commands import cancel_run
from runs.rest.submissions import submit
from tests.support.running import House

pytestmark = pytest.mark.slow

EFFECTS = {"read": ["allow", "deny"], "shared-write": ["deny", "require-approval"]}


def rules(action_class: str) -> st.SearchStrategy[Any]:
    one = st.fixed_dictionaries(
        {"actionClass": st.just(action_class), "effect": st.sampled_from(EFFECTS[action_class])},
        optional={"environment": st.sampled_from(["*", "stag*", "production", "?roduction"])},
    )
    return st.lists(one, max_size=2)


@given(
    read=rules("read"), write=rules("shared-write"), place=st.sampled_from([None, "staging", "production"])
)
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_what_is_explained_of_a_class_in_an_environment_happens(tenant_id, read, write, place) -> None:
    house = _house(tenant_id)
    document = deepcopy(platform_default())
    document["rules"] = [rule for rule in document["rules"] if rule["actionClass"] != "shared-write"]
    document["rules"] += read + write
    publish_policy_revision(house.world.tenant_admin, document=document)
    where = str(house.world.environments[place]) if place else None
    assert _submitted(house, "single", where) == _explained(house, "read", place)
    assert _asked(house, where) == _explained(house, "shared-write", place)


def _explained(house: House, action_class: str, place: str | None) -> str:
    with reading(house.system):
        policy = current_policy(house.system)
        told = explain(policy, action_class, project_id=house.world.project, environment=place)
    return str(told.verdict.effect)


def _submitted(house: House, workflow_id: str, where: str | None) -> str:
    payload = house.payload(workflow_id, environmentId=where)
    try:
        body, _ = submit(house.world.requester, payload=payload, key=str(uuid4()))
    except PolicyDenied:
        return "deny"
    cancel_run(house.world.operator, run_id=UUID(body["runId"]), reason="it was accepted")
    return "allow"


def _asked(house: House, where: str | None) -> str:
    run_id = house.run("gated", environmentId=where)
    worker = house.hand()
    work = worker.take()
    try:
        effect = worker.ask(work).effect
    except PolicyDenied:
        effect = "deny"
    cancel_run(house.world.operator, run_id=run_id, reason="it was answered")
    worker.report(work, "Cancelled", "cancellation")
    return str(effect)


def test_a_denied_step_that_asks_nobody_is_refused_with_the_run(tenant_id) -> None:
    house = House(tenant_id)
    document = deepcopy(platform_default())
    document["rules"].append({"actionClass": "read", "environment": "staging", "effect": "deny"})
    publish_policy_revision(house.world.tenant_admin, document=document)
    assert house.run("single"), "It is denied in staging alone."
    with pytest.raises(PolicyDenied) as no:
        house.run("single", environmentId=str(house.world.environments["staging"]))
    assert "denies read here" in no.value.detail
    assert "the steps look" in no.value.detail


def test_a_publication_is_explained_in_no_environment(tenant_id) -> None:
    house = House(tenant_id)
    with reading(house.system), pytest.raises(InvalidInput) as no:
        explain(current_policy(house.system), "publication", project_id=None, environment="staging")
    assert [error.pointer for error in no.value.errors] == ["/environment"]


_HOUSES: dict[str, House] = {}


def _house(tenant_id: str) -> House:
    """One house for all examples of a test: each publishes the policy that it is about."""
    if tenant_id not in _HOUSES:
        _HOUSES[tenant_id] = House(tenant_id)
    return _HOUSES[tenant_id]
