"""What the policy says of a run's money is what happens to it: explain and enforcement, over policies."""

from copy import deepcopy
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from approvals.commands import publish_policy_revision
from approvals.policy.document import platform_default
from approvals.selectors import current_policy, explain
from factory.kernel.tenancy import reading
from tests.support.evidence import violations
from tests.support.receipts import costing
from tests.support.running import House
from usage.selectors import reservation_of

pytestmark = pytest.mark.slow

MANY = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
PLACES = st.sampled_from([None, "staging", "production"])
RULES = st.lists(
    st.fixed_dictionaries(
        {"effect": st.sampled_from(["deny", "require-approval"])},
        optional={"environment": st.sampled_from(["*", "stag*", "production"])},
    ),
    max_size=3,
)
SPEND = st.fixed_dictionaries(
    {},
    optional={
        "thresholdUsd": st.sampled_from([0, 5, 10, 10.000001]),
        "onLimit": st.sampled_from(["ask", "fail"]),
    },
)


def about_spend(house: House, rules: list[dict[str, Any]], spend: dict[str, Any]) -> None:
    document = deepcopy(platform_default()) | {"spend": spend}
    if not spend:
        document.pop("spend")
    document["rules"] = [rule for rule in document["rules"] if rule["actionClass"] != "spend"]
    document["rules"] += [{"actionClass": "spend", **rule} for rule in rules]
    publish_policy_revision(house.world.tenant_admin, document=document)


def explained(house: House, place: str | None, amount: str) -> Any:
    with reading(house.system):
        policy = current_policy(house.system)
        return explain(
            policy, "spend", project_id=house.world.project, environment=place, amount=Decimal(amount)
        )


def begun(house: House, place: str | None, cost: float, workflow: str = "diamond") -> Any:
    where = str(house.world.environments[place]) if place else None
    return house.run(workflow, environmentId=where, limits={"maxCostUsd": cost, "maxMinutes": 30})


def became(house: House, run_id: Any) -> str:
    """The word of explain for what was done with the money of a run that has just been started."""
    row = house.row(run_id)
    with reading(house.system):
        held = reservation_of(run_id)
    if row.state == "Failed":
        assert (row.failure_class, held) == ("policy-denied", None)
        return "deny"
    if house.pending(run_id):
        assert held is None
        return "require-approval"
    assert held is not None
    return "allow"


@given(rules=RULES, spend=SPEND, place=PLACES, cost=st.sampled_from([4, 5, 5.000001, 10, 10.000001, 900]))
@MANY
def test_a_run_begins_as_explain_says_of_its_money(tenant_id, rules, spend, place, cost) -> None:
    house = _house(tenant_id)
    about_spend(house, rules, spend)
    told = explained(house, place, str(cost))
    run_id = begun(house, place, cost)
    assert became(house, run_id) == told.verdict.effect
    for view in house.pending(run_id):
        assert (view.approver_roles, view.quorum) == (told.verdict.roles, told.verdict.quorum)


@given(rules=RULES, onLimit=st.sampled_from(["ask", "fail"]), place=PLACES)
@MANY
def test_a_run_at_its_limit_goes_on_as_explain_says(tenant_id, rules, onLimit, place) -> None:
    house = _house(tenant_id)
    about_spend(house, [], {"thresholdUsd": 5})
    with reading(house.system):
        allowed = explain(current_policy(house.system), "spend", project_id=None)
    assert allowed.verdict.effect == "require-approval"
    about_spend(house, rules, {"thresholdUsd": 5, "onLimit": onLimit})
    told = explained(house, place, "5")
    run_id = begun(house, place, 5)
    if told.verdict.effect == "deny":
        assert told.at_the_limit.effect == "deny"
        return
    worker = house.hand()
    worker.report(worker.take(), output=1, receipts=[costing("6")])
    row = house.row(run_id)
    if told.at_the_limit.effect == "deny":
        assert (row.state, row.failure_class) == ("Failed", "budget")
        assert told.at_the_limit.rule in row.reason
    else:
        assert row.state == "WaitingForApproval"
        [view] = house.pending(run_id)
        assert (view.approver_roles, view.quorum) == (told.at_the_limit.roles, told.at_the_limit.quorum)
        house.decide(view.id, "reject")


def test_a_rule_that_denies_spend_needs_no_threshold_to_deny(tenant_id) -> None:
    house = House(tenant_id)
    about_spend(house, [{"effect": "deny"}], {})
    assert explained(house, None, "900").verdict.effect == "deny"
    run_id = begun(house, None, 900)
    assert became(house, run_id) == "deny"
    assert "denies spend" in house.row(run_id).reason
    assert violations(house.tenant) == []


def test_a_rule_that_denies_spend_denies_what_is_above_the_threshold(tenant_id) -> None:
    house = House(tenant_id)
    about_spend(house, [{"effect": "deny"}], {"thresholdUsd": 5})
    for cost, effect in ((5, "allow"), (6, "deny")):
        assert explained(house, None, str(cost)).verdict.effect == effect
        assert became(house, begun(house, None, cost)) == effect
    assert violations(house.tenant) == []


_HOUSES: dict[str, House] = {}


def _house(tenant_id: str) -> House:
    """One house for all examples of a test: each publishes the policy that it is about."""
    if tenant_id not in _HOUSES:
        _HOUSES[tenant_id] = House(tenant_id, budget="1000000")
    return _HOUSES[tenant_id]
