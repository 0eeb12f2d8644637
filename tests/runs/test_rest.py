"""Runs over HTTP, as a caller sees them."""

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from factory.kernel.tenancy import reading
from projects.commands import onboard_project
from projects.commands.inputs import NewEnvironment
from projects.models import Environment
from tests.support.api import Api, problem
from tests.support.running import House
from tests.support.world import ALL

pytestmark = pytest.mark.slow

RUNS = "/factory/runs"


@pytest.mark.requirement("API-02", "RUN-31", "API-06", "API-16", "API-01", "API-03")
def test_accepts_a_submission_and_answers_it_again(house: House) -> None:
    api, key = Api.as_(house.world.requester), str(uuid4())
    first = api.post(RUNS, house.payload(), Idempotency_Key=key)
    assert first.status_code == 202, first.content
    body = first.json()
    assert first["Location"] == f"{RUNS}/{body['runId']}" == body["links"]["self"]
    assert (body["state"], body["policyRevision"], body["version"]) == ("Accepted", "r1", 1)
    kept = house.row(UUID(body["runId"]))
    pins = (str(house.release), kept.release_hash, str(kept.snapshot_id))
    assert (body["releaseId"], body["releaseHash"], body["snapshotId"]) == pins
    again = api.post(RUNS, dict(reversed(house.payload().items())), Idempotency_Key=key)
    assert (again.status_code, again["Idempotent-Replayed"], again.json()) == (202, "true", body)
    other = api.post(RUNS, house.payload(input={"repository": "other"}), Idempotency_Key=key)
    assert problem(other)["type"].endswith("idempotency-conflict")
    missing = api.post(RUNS, house.payload())
    assert (missing.status_code, problem(missing)["type"]) == (
        400,
        "/factory/problems/idempotency-key-missing",
    )
    assert len(api.get(RUNS).json()["items"]) == 1


@pytest.mark.parametrize(
    ("changes", "status", "pointer"),
    [
        ({"surprise": 1}, 400, "/surprise"),
        ({"workflowId": 7}, 400, "/workflowId"),
        ({"releaseId": "x"}, 400, "/releaseId"),
        ({"releaseAlias": None}, 400, "/releaseAlias"),
        ({"input": {"repository": 1}}, 400, "/input/repository"),
        ({"input": {"repository": "x", "more": 1}}, 400, "/input/more"),
        ({"input": {}}, 400, "/input/repository"),
        ({"limits": {"maxCostUsd": -1}}, 400, "/limits/maxCostUsd"),
        ({"limits": {"maxCostUsd": True}}, 400, "/limits/maxCostUsd"),
        ({"limits": {"maxMinutes": 1.5}}, 400, "/limits/maxMinutes"),
        ({"limits": {"maxHours": 1}}, 400, "/limits/maxHours"),
        ({"workflowId": "nothing"}, 422, "/workflowId"),
        ({"releaseAlias": "nothing"}, 422, "/releaseAlias"),
        ({"modelProfileId": "nothing"}, 422, "/modelProfileId"),
        ({"environmentId": str(uuid4())}, 422, "/environmentId"),
        ({"previousRunId": str(uuid4())}, 422, "/previousRunId"),
    ],
)
@pytest.mark.requirement("RUN-35", "RUN-36", "USG-15")
def test_says_where_a_submission_is_wrong(house: House, changes, status: int, pointer: str) -> None:
    response = Api.as_(house.world.requester).post(
        RUNS, house.payload() | changes, Idempotency_Key=str(uuid4())
    )
    assert response.status_code == status, response.content
    assert pointer in [fault["pointer"] for fault in problem(response)["errors"]]


@pytest.mark.requirement("RUN-37", "PRJ-04")
def test_an_environment_is_one_of_the_run_s_own_project(house: House) -> None:
    own = str(house.world.environment)
    beside = onboard_project(
        house.system, slug="beside", name="Beside", environments=[NewEnvironment("live")], members=[]
    )
    with reading(replace(house.system, project_id=UUID(beside["projectId"]))):
        foreign = str(Environment.objects.get(project_id=beside["projectId"]).id)
    api = Api.as_(house.world.requester)

    def send(**environment: str) -> Any:
        return api.post(RUNS, house.payload() | environment, Idempotency_Key=str(uuid4()))

    refused = send(environmentId=foreign)
    assert (refused.status_code, problem(refused)["errors"][0]["pointer"]) == (422, "/environmentId")
    kept = [house.row(UUID(send(**chosen).json()["runId"])) for chosen in ({"environmentId": own}, {})]
    assert [run.environment_id for run in kept] == [UUID(own), None]


@pytest.mark.requirement("API-09")
def test_shows_a_run_with_all_that_belongs_to_it(house: House) -> None:
    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    worker.ask(work)
    api = Api.as_(house.world.requester)
    response = api.get(f"{RUNS}/{run_id}")
    body = response.json()
    assert (body["state"], body["waitingFor"]) == ("WaitingForApproval", "Waits for a person's approval.")
    [step] = body["steps"]
    [attempt] = step["attempts"]
    assert (step["state"], step["gated"], attempt["state"]) == ("Running", True, "Open")
    assert attempt["lease"]["fencingToken"] == work.fencing_token
    assert len(body["approvals"]) == 1
    assert body["usage"] == {"cost": {"amount": "0.000000", "currency": "USD"}, "uncertain": 0, "records": 0}
    assert body["sequence"] > 8
    same = api.get(f"{RUNS}/{run_id}", If_None_Match=response["ETag"])
    assert same.status_code == 304
    journal = api.get(f"{RUNS}/{run_id}/journal").json()["items"]
    assert [entry["sequence"] for entry in journal] == list(range(1, body["sequence"] + 1))
    graph = api.get(f"{RUNS}/{run_id}/graph").json()
    assert [(n["key"], n["state"]) for n in graph["nodes"]] == [("publish", "Running")]
    listed = api.get(f"{RUNS}?state=WaitingForApproval&workflowId=gated").json()
    assert [item["runId"] for item in listed["items"]] == [str(run_id)]


def test_shows_payloads_to_those_alone_who_may_see_them(house: House) -> None:
    run_id = house.run("single")
    seen = Api.as_(house.world.requester).get(f"{RUNS}/{run_id}").json()
    assert seen["input"] == {"repository": "https://git.example.test/x.git"}
    for api in (
        Api.as_(house.world.observer),
        Api.as_(house.world.requester, scopes=ALL - {"factory.payloads.read"}),
    ):
        assert "input" not in api.get(f"{RUNS}/{run_id}").json()


@pytest.mark.requirement("RUN-10", "RUN-22", "RUN-25", "API-12", "API-11")
def test_cancels_over_http(house: House) -> None:
    run_id = house.run("single")
    path = f"{RUNS}/{run_id}/cancel"
    for who in (house.world.observer, house.world.reviewer):
        assert Api.as_(who).post(path, {"reason": "no"}).status_code == 403
    assert Api.as_(house.world.requester).post(path, {}).status_code == 400
    done = Api.as_(house.world.operator).post(path, {"reason": "enough"})
    assert (done.status_code, done.json()) == (202, {"runId": str(run_id), "state": "Cancelled"})
    again = Api.as_(house.world.requester).post(path, {"reason": "still"})
    assert (again.status_code, again.json()["state"]) == (202, "Cancelled")


def test_another_project_or_tenant_sees_nothing(house: House, tenant_id: str) -> None:
    from tests.support.world import second_world

    run_id = house.run("single")
    stranger = Api.as_(second_world(tenant_id).requester)
    for path in ("", "/journal", "/graph"):
        assert stranger.get(f"{RUNS}/{run_id}{path}").status_code == 404
    assert stranger.post(f"{RUNS}/{run_id}/cancel", {"reason": "mine"}).status_code == 404
    assert stranger.get(RUNS).json()["items"] == []
    assert Api.as_(house.world.requester).call("PATCH", f"{RUNS}/{run_id}", {"state": "x"}).status_code == 405
