"""Uncertain attempts: an Operator sees everything that there is to know, and settles them."""

import pytest
from django.urls import reverse

from runs.reconcilers import LeaseExpiryReconciler
from tests.console.test_pages import signed_in
from tests.support.api import Api
from tests.support.receipts import effect
from tests.support.running import House

pytestmark = pytest.mark.slow

PATH = "/factory/uncertain-attempts"


@pytest.fixture
def doubtful(house: House) -> House:
    """A run whose holder fell silent after its authorization, having reported an effect."""
    house.run("gated")
    worker = house.hand()
    work = worker.take()
    asked = worker.ask(work)
    house.decide(asked.approval_id)
    worker.authorize(work, asked.approval_id)
    worker.receipts(work, effect(asked.approval_id, hint="<b>half</b>"))
    house.let_lapse(work.lease_id)
    LeaseExpiryReconciler().run_once(house.tenant)
    return house


@pytest.mark.requirement("ATT-06", "ARC-10")
def test_an_operator_is_shown_the_receipt_the_authorization_the_proposal_and_the_holder(
    doubtful: House,
) -> None:
    house = doubtful
    [item] = Api.as_(house.world.operator).get(PATH).json()["items"]
    [holder], [taken] = item["holders"], item["authorizations"]
    [allowed], [receipt] = item["approvals"], item["receipts"]
    assert (item["nodeKey"], item["sideEffectClass"], item["stepState"]) == (
        "publish",
        "shared-write",
        "Running",
    )
    assert (holder["workerName"], holder["state"]) == ("w1", "Expired")
    assert taken["proposalHash"] == allowed["proposalHash"] == receipt["proposalHash"]
    assert allowed["decidedBy"] == house.world.reviewer.actor.subject
    assert receipt["details"] == {"hint": "<b>half</b>"}
    assert "details" not in Api.as_(house.world.workspace_admin).get(PATH).json()["items"][0]["receipts"][0]
    assert Api.as_(house.world.requester).get(PATH).status_code == 403


@pytest.mark.requirement("ATT-06")
def test_the_page_shows_it_beside_the_three_ways_and_only_keepers_see_the_queue(doubtful: House) -> None:
    house = doubtful
    queue = reverse("admin:runs_step_changelist")
    assert signed_in(house.world.requester).get(queue).status_code == 403
    [item] = Api.as_(house.world.operator).get(PATH).json()["items"]
    listed = signed_in(house.world.operator).get(queue).content.decode()
    [receipt] = item["receipts"]
    for said in ("publish of gated", "effect receipt", receipt["proposalHash"], "w1", "Settle"):
        assert said in listed
    assert "An Operator settles it." in signed_in(house.world.workspace_admin).get(queue).content.decode()
    page = reverse("admin:runs_run_change", args=[item["runId"]])
    text = signed_in(house.world.operator).get(page).content.decode()
    for said in ("Authorized", "What was allowed", "Held by", item["receipts"][0]["receiptId"], "Give up"):
        assert said in text
    body = {"resolution": "effect-happened", "evidence": "it is there", "version": item["version"]}
    path = f"/factory/runs/{item['runId']}/steps/{item['stepId']}/resolution"
    assert Api.as_(house.world.operator).post(path, body).status_code == 200
    assert Api.as_(house.world.operator).get(PATH).json()["items"] == []
