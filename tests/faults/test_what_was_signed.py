"""Over HTTP, by a worker that does other than it was allowed: H was approved, and something else was done."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import httpx
import pytest

from factory.kernel.hashing import digest
from runs.operations import settling
from tests.support.api import Api, worker_token
from tests.support.evidence import audits, violations
from tests.support.proposals import DIFF, OTHER_DIFF
from tests.support.receipts import effect
from tests.support.running import House

OTHER = OTHER_DIFF


class Worker:
    """A worker as its HTTP calls are, with nothing in between that could keep it honest."""

    def __init__(self, base: str, house: House, name: str = "rogue") -> None:
        self.base, self.house, self.name = base, house, name
        self.headers = {"Authorization": f"Bearer {worker_token(f'worker:{name}', pool=house.pool)}"}
        answer = self.call(
            "PUT", f"/workers/{name}", {"capabilities": ["*/*"], "maxConcurrency": 8, "version": "1"}
        )
        self.headers["Factory-Worker-Instance"] = answer.json()["instanceId"]

    def call(self, method: str, path: str, body: Any) -> httpx.Response:
        return httpx.request(method, f"{self.base}{path}", json=body, headers=self.headers, timeout=30)

    def take(self) -> dict[str, Any]:
        [work] = self.call("POST", f"/workers/{self.name}/poll?wait=0", {}).json()["assignments"]
        self.of(work, "lease", {}).raise_for_status()
        return work

    def of(self, work: dict[str, Any], what: str, body: dict[str, Any]) -> httpx.Response:
        fence = {name: work[name] for name in ("leaseId", "fencingToken")}
        return self.call("POST", f"/attempts/{work['attemptId']}/{what}", fence | body)

    def ask(self, work: dict[str, Any], proposal: Any) -> UUID:
        return UUID(self.asking(work, proposal).json()["approvalId"])

    def asking(self, work: dict[str, Any], proposal: Any) -> httpx.Response:
        pins = {"releaseId": work["release"]["id"], "environmentId": None, "actionClass": "shared-write"}
        pins |= {name: work["snapshot"][name] for name in ("snapshotId", "policyRevision")}
        words = {"proposal": proposal, "proposalHash": digest(proposal), "summary": "commit"}
        return self.of(work, "approvals", pins | words)

    def authorize(self, work: dict[str, Any], approval_id: UUID, proposal: Any) -> httpx.Response:
        body = {"approvalId": str(approval_id), "proposalHash": digest(proposal)}
        return self.of(work, "authorizations", body)

    def report(self, work: dict[str, Any], *effects: dict[str, Any]) -> httpx.Response:
        told = {"outcome": "Succeeded", "failureClass": None, "reason": None, "output": {"done": True}}
        return self.of(work, "outcome", {**told, "outcomeHash": digest(told), "receipts": list(effects)})


def approved(house: House, worker: Worker, proposal: Any = DIFF) -> tuple[UUID, dict[str, Any], UUID]:
    """A run whose step holds an approval for `proposal`, given over HTTP by a reviewer."""
    run_id = house.run("gated")
    work = worker.take()
    approval_id = worker.ask(work, proposal)
    reviewer = Api.as_(house.world.reviewer)
    path = f"/factory/approvals/{approval_id}"
    shown = reviewer.get(path).json()
    body = {"decision": "approve", "version": shown["version"], "proposalHash": shown["proposalHash"]}
    assert reviewer.post(f"{path}/decision", body).status_code == 200
    return run_id, work, approval_id


def another_proposal(house: House, worker: Worker) -> tuple[UUID, dict[str, Any], list[dict[str, Any]]]:
    run_id, work, approval_id = approved(house, worker)
    assert refused(worker.authorize(work, approval_id, OTHER)) == (409, "not-authorized")
    assert worker.authorize(work, approval_id, DIFF).status_code == 200
    return run_id, work, [effect(approval_id, OTHER)]


def twice_with_one_approval(
    house: House, worker: Worker
) -> tuple[UUID, dict[str, Any], list[dict[str, Any]]]:
    run_id, work, approval_id = approved(house, worker)
    first = worker.authorize(work, approval_id, DIFF).json()
    assert worker.authorize(work, approval_id, DIFF).json() == first, "the same holder is told the same"
    return run_id, work, [effect(approval_id), effect(approval_id)]


def another_runs(house: House, worker: Worker) -> tuple[UUID, dict[str, Any], list[dict[str, Any]]]:
    _, _, approval_id = approved(house, worker)
    run_id, work, _ = approved(house, worker)
    assert refused(worker.authorize(work, approval_id, DIFF)) == (409, "not-authorized")
    return run_id, work, [effect(approval_id)]


def without_asking(house: House, worker: Worker) -> tuple[UUID, dict[str, Any], list[dict[str, Any]]]:
    run_id, work, approval_id = approved(house, worker)
    return run_id, work, [effect(approval_id)]


def refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, str(answer.json()["type"]).rpartition("/")[2]


WAYS: list[Callable[..., Any]] = [another_proposal, twice_with_one_approval, another_runs, without_asking]


@pytest.mark.requirement("APR-09")
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_an_effect_other_than_what_was_signed_is_a_violation(
    house: House, base: str, way: Callable[..., Any]
) -> None:
    run_id, work, effects = way(house, Worker(base, house))
    assert Worker(base, house).report(work, *effects).status_code == 200
    run, step = house.row(run_id), house.steps(run_id)["publish"]
    assert (run.state, run.failure_class) == ("Failed", "policy-denied")
    assert (step.state, step.failure_class, step.attention) == ("Failed", "policy-denied", "violation")
    [noted] = audits(house.system, "PolicyViolation")
    assert noted.subject == f"attempt:{work['attemptId']}"


@pytest.mark.requirement("APR-09")
def test_a_used_approval_is_good_for_no_later_attempt(house: House, base: str) -> None:
    worker = Worker(base, house)
    run_id, work, approval_id = approved(house, worker)
    assert worker.authorize(work, approval_id, DIFF).status_code == 200
    denied = effect(approval_id, tookPlace=False)
    told = {"outcome": "Failed", "failureClass": "transient", "reason": "not reached", "output": None}
    body = {**told, "outcomeHash": digest(told), "receipts": [denied]}
    assert worker.of(work, "outcome", body).status_code == 200
    house.make_due(run_id)
    again = worker.take()
    assert refused(worker.authorize(again, approval_id, DIFF)) == (409, "authorization-used")
    assert worker.ask(again, DIFF) != approval_id


def test_without_the_check_the_auditor_finds_the_effect(
    tenant_id: str, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weaker rule: receipts are believed. What it lets through, the auditor does not."""
    house = House(tenant_id)
    monkeypatch.setattr(settling, "violation_of", lambda attempt: "")
    run_id, work, effects = without_asking(house, Worker(base, house))
    Worker(base, house).report(work, *effects)
    assert house.state(run_id) == "Completed"
    assert {found.code for found in violations(tenant_id)} == {"D4"}
