"""Run templates and waivers over HTTP, from the first call to the last."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from runs.commands import start_run
from runs.watch import acts
from tests.runs.test_waivers import asked
from tests.support.api import Api, problem
from tests.support.running import House
from tests.support.workflows import PROFILE

NEW = {
    "name": "nightly",
    "workflowId": "gated",
    "modelProfileId": PROFILE,
    "limits": {"maxCostUsd": 5, "maxMinutes": 30},
}


@pytest.mark.slow
@pytest.mark.requirement("LTR-03")
def test_a_template_its_waiver_and_a_run_from_both(tenant_id: str) -> None:
    house = House(tenant_id)
    w = house.world
    operator, admin, reviewer = (Api.as_(who) for who in (w.operator, w.workspace_admin, w.reviewer))
    made = operator.post("/factory/run-templates", NEW, Idempotency_Key="one")
    assert (made.status_code, made.json()["state"]) == (201, "Active"), made.content
    again = operator.post("/factory/run-templates", NEW, Idempotency_Key="one")
    assert (again.json(), again["Idempotent-Replayed"]) == (made.json(), "true")
    assert problem(operator.post("/factory/run-templates", NEW))["type"].endswith("template-name-taken")
    where = made["Location"]
    assert operator.get(where).json() == made.json()
    kind = made.json()["templateId"]

    body = {
        "releaseId": str(house.release),
        "environmentIds": [str(w.environment)],
        "expiresAt": (datetime.now(UTC) + timedelta(days=1)).isoformat(),
        "reason": "every night",
    }
    late = admin.post(f"{where}/waivers", body | {"expiresAt": "2020-01-01T00:00:00Z"})
    assert [fault["pointer"] for fault in problem(late)["errors"]] == ["/expiresAt"]
    told = admin.post(f"{where}/waivers", body)
    assert (told.status_code, told.json()["state"]) == (202, "Requested")
    waiver, page = told.json()["waiverId"], told["Location"]
    house.decide(UUID(told.json()["approvalId"]))

    payload = {"templateId": kind, "environmentId": str(w.environment), "input": {"repository": "x"}}
    accepted = Api.as_(w.requester).post("/factory/runs", payload, Idempotency_Key=str(uuid4()))
    assert (accepted.status_code, accepted.json()["templateId"]) == (202, kind)
    run_id = UUID(accepted.json()["runId"])
    start_run(house.system, run_id=run_id)
    hand, work, _, view = asked(house, run_id)
    fence = {name: value for name, value in hand.fence(work).items() if name != "attempt_id"}
    values = fence | {"approval_id": view.id, "proposal_hash": view.proposal_hash}
    answer, status = acts.authorization(hand.scope(work.attempt_id), work.attempt_id, None, values)
    assert (answer["waiverId"], status) == (waiver, 200)
    shown = reviewer.get(f"/factory/approvals/{view.id}").json()
    assert (shown["waiverId"], shown["authorization"]["waiverId"]) == (waiver, waiver)
    assert reviewer.get(f"/factory/runs/{run_id}").json()["templateId"] == kind

    [listed] = reviewer.get(f"/factory/waivers?state=Active&templateId={kind}").json()["items"]
    assert listed | {"othersInForce": []} == reviewer.get(page).json()
    assert (listed["uses"], listed["environments"], listed["deciders"]) == (
        1,
        ["staging"],
        [w.reviewer.actor.subject],
    )
    ended = reviewer.post(f"{page}/revoke", {"reason": "enough"}).json()
    assert (ended["state"], ended["endReason"]) == ("Revoked", "enough")
    assert problem(reviewer.post(f"{page}/revoke", {"reason": "twice"}))["type"].endswith("waiver-over")
    retired = operator.post(f"{where}/retire", {"reason": "over"}).json()
    assert (retired["state"], retired["reason"]) == ("Retired", "over")
    assert operator.get("/factory/run-templates?state=Active").json()["items"] == []
