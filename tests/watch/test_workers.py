"""The workers' surface over HTTP, called as the reference worker calls it."""

import json
import threading
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from factory.kernel.hashing import digest
from factory.kernel.hints import publish
from runs.commands import cancel_run
from runs.worker.client import WorkerClient
from runs.worker.errors import ApiConflict
from tests.support.api import token_of, worker_token
from tests.support.evidence import violations
from tests.support.proposals import DIFF
from tests.support.receipts import receipt
from tests.support.running import House
from tests.watch.server import serving
from tests.watch.test_stream import listening


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    with serving() as url:
        yield f"{url}/factory"


@pytest.fixture
def house(tenant_id: str) -> Iterator[House]:
    made = House(tenant_id)
    yield made
    assert violations(tenant_id) == []


@pytest.fixture
def worker(base: str, house: House) -> Iterator[WorkerClient]:
    token = worker_token("worker:w1", pool=house.pool)
    client = WorkerClient(base, lambda: token, "w1", patience=5)
    client.register(["*/*"], 4, "1.0")
    yield client
    client.close()


def call(
    base: str, method: str, path: str, body: Any = None, token: str = "", **headers: str
) -> httpx.Response:
    sent = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.request(method, f"{base}{path}", json=body, headers=sent | headers, timeout=30)


def outcome(work: Any, output: Any) -> dict[str, Any]:
    told = {"outcome": "Succeeded", "failureClass": None, "reason": None, "output": output}
    return {**work.fence, **told, "outcomeHash": digest(told)}


@pytest.mark.requirement("WAPI-01", "WAPI-02", "WAPI-03", "WAPI-10")
def test_carries_a_run_through_parking_and_a_decision(base, house, worker):
    run_id = house.run("gated")
    [work] = worker.poll(wait=0)
    assert not worker.acquire(work).cancel_requested
    manifest = worker.manifest(work.release.manifest_url)
    assert manifest["releaseId"] == work.release.id
    url = work.release.manifest_url.removesuffix("manifest")
    assert (
        worker.download(f"{url}files/{manifest['files'][0]['sha256'].removeprefix('sha256:')}") == b"Look.\n"
    )
    worker.send_receipts(work, [receipt()])
    ask = {"action_class": "shared-write", "proposal": DIFF, "summary": "publish wants to commit"}
    asked = worker.request_approval(work, **ask, park=True, checkpoint={"at": 1})
    assert (asked.effect, asked.decision) == ("require-approval", None)
    assert worker.poll(wait=0) == []
    assert house.state(run_id) == "WaitingForApproval"
    house.decide(UUID(asked.approval_id))
    [again] = worker.poll(wait=5)
    assert (again.attempt_id, again.checkpoint) == (work.attempt_id, {"at": 1})
    assert again.fence["fencingToken"] > work.fence["fencingToken"]
    worker.acquire(again)
    assert again.decision is not None
    first = worker.authorize(again, approval_id=asked.approval_id, proposal_hash=digest(DIFF))
    assert worker.authorize(again, approval_id=asked.approval_id, proposal_hash=digest(DIFF)) == first
    told = outcome(again, {"done": True})
    token = worker._token()
    for _ in range(2):
        answer = call(base, "POST", f"/attempts/{again.attempt_id}/outcome", told, token)
        assert answer.status_code == 200
        assert answer.json() == {
            "attemptId": again.attempt_id,
            "outcome": "Succeeded",
            "outcomeHash": told["outcomeHash"],
        }
    assert house.state(run_id) == "Completed"


def test_a_poll_waits_for_work_without_holding_a_thread(base, house):
    """Sixteen waiting pollers on four threads: calls of others are answered at once, and work wakes them."""
    clients = [_poller(base, house, n) for n in range(16)]
    got: list[Any] = []

    def poll(client: WorkerClient) -> None:
        got.extend(client.poll(wait=8))

    threads = [threading.Thread(target=poll, args=[client]) for client in clients]
    for thread in threads:
        thread.start()
    time.sleep(1.5)
    began = time.monotonic()
    assert call(base, "GET", "/../healthz").status_code == 200
    token = worker_token("worker:more", pool=house.pool)
    more = {"capabilities": ["*/*"], "maxConcurrency": 1, "version": ""}
    assert call(base, "PUT", "/workers/more", more, token).status_code == 200
    assert time.monotonic() - began < 4, "Nobody who waits is in the way."
    house.run("single")
    publish("work")
    deadline = time.monotonic() + 5
    while not got:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    for thread in threads:
        thread.join(15)
    assert len({work.lease_id for work in got}) == len(got) == 1
    for client in clients:
        client.close()


def _poller(base: str, house: House, number: int) -> WorkerClient:
    token = worker_token(f"worker:w{number}", pool=house.pool)
    client = WorkerClient(base, lambda: token, f"w{number}", patience=5)
    client.register(["*/*"], 1, "1.0")
    return client


@pytest.mark.requirement("WAPI-05", "SEC-13")
def test_a_persons_token_opens_nothing_here_and_a_workers_nothing_there(base, house):
    person = token_of(house.world.platform_admin)
    calls = [
        ("PUT", "/workers/w1", {"capabilities": ["*/*"], "maxConcurrency": 1, "version": ""}),
        ("POST", "/workers/w1/poll", {}),
        ("POST", "/workers/w1/drain", {}),
        *(("POST", f"/attempts/{uuid4()}/{name}", {}) for name in ("lease", "receipts", "approvals")),
        *(("POST", f"/attempts/{uuid4()}/{name}", {}) for name in ("authorizations", "outcome")),
        ("GET", f"/releases/{house.release}/manifest", None),
    ]
    instance = {"Factory-Worker-Instance": str(uuid4())}
    for method, path, body in calls:
        for token, status in ((person, 403), ("", 401), ("a.b.c", 401)):
            answer = call(base, method, path, body, token, **instance)
            assert (answer.status_code, answer.headers["Content-Type"]) == (
                status,
                "application/problem+json",
            )


def test_another_pools_attempt_and_release_are_not_there(base, house, worker):
    house.run("single")
    [work] = worker.poll(wait=0)
    foreign = worker_token("worker:w1", pool=f"{house.pool}-other")
    house_b = House(f"{house.tenant}-b")
    other = worker_token("worker:w1", pool=house_b.pool)
    answers = [
        call(base, "POST", f"/attempts/{identifier}/lease", work.fence, token)
        for identifier in (work.attempt_id, uuid4())
        for token in (foreign, other)
    ]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.json()["type"] for answer in answers}) == 1
    assert call(base, "GET", f"/releases/{house.release}/manifest", token=other).status_code == 404
    assert call(base, "GET", f"/releases/{uuid4()}/manifest", token=other).status_code == 404


def test_a_stale_token_and_an_older_process_are_refused(base, house, worker):
    house.run("single")
    [work] = worker.poll(wait=0)
    token = worker._token()
    stale = {**work.fence, "fencingToken": work.fence["fencingToken"] - 1}
    answer = call(base, "POST", f"/attempts/{work.attempt_id}/lease", stale, token)
    assert (answer.status_code, answer.json()["type"]) == (409, "/factory/problems/stale-fencing-token")
    worker.acquire(work)
    call(base, "POST", f"/attempts/{work.attempt_id}/outcome", outcome(work, 1), token).raise_for_status()
    another = call(base, "POST", f"/attempts/{work.attempt_id}/outcome", outcome(work, 2), token)
    assert another.status_code == 409
    younger = WorkerClient(base, lambda: token, "w1", patience=5)
    younger.register(["*/*"], 4, "1.0")
    with pytest.raises(ApiConflict) as refused:
        worker.poll(wait=0)
    assert refused.value.slug == "worker-superseded"
    younger.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "content", "kind", "status"),
    [
        ("lease", b"{}", "application/json", 400),
        ("lease", b'{"leaseId": "x", "fencingToken": 1}', "application/json", 400),
        ("lease", b'{"leaseId": 1, "fencingToken": "1", "more": 1}', "application/json", 400),
        ("lease", b'{"a": 1, "a": 2}', "application/json", 400),
        ("lease", b"{}", "text/plain", 415),
        ("lease", b'{"leaseId": 1e400}', "application/json", 400),
        *(
            ("outcome", b'{"receipts": ' + b"[" * deep + b"]" * deep + b"}", "application/json", 400)
            for deep in (501, 960, 970, 980, 990, 5000)
        ),
        ("outcome", b'"' + b"x" * 2 * 1024 * 1024 + b'"', "application/json", 413),
        ("nothing", b"{}", "application/json", 404),
    ],
)
def test_reads_as_strictly_as_the_rest_surface(base, house, path, content, kind, status):
    headers = {"Authorization": f"Bearer {worker_token(pool=house.pool)}", "Content-Type": kind}
    answer = httpx.post(f"{base}/attempts/{uuid4()}/{path}", content=content, headers=headers)
    assert answer.status_code == status, answer.text
    told = answer.json()
    assert (told["status"], told["instance"]) == (status, answer.request.url.path)


def test_wants_a_sane_waiting_time_and_an_instance(base, house, worker):
    token = worker._token()
    instance = {"Factory-Worker-Instance": worker.instance_id}
    for wait in ("31", "-1", "x", "1.5", "1&wait=2"):
        assert call(base, "POST", f"/workers/w1/poll?wait={wait}", {}, token, **instance).status_code == 400
    assert call(base, "POST", "/workers/w1/poll", {}, token).status_code == 400
    assert call(base, "POST", "/workers/w%00/poll", {}, token, **instance).status_code == 400
    unknown = call(base, "POST", "/workers/w2/poll", {}, token, **instance)
    assert (unknown.status_code, unknown.json()["type"]) == (404, "/factory/problems/worker-not-registered")


@pytest.mark.requirement("WAPI-04", "APR-31")
def test_a_worker_sees_the_decision_and_the_interrupt_on_the_watch(base, house, worker):
    run_id = house.run("gated")
    [work] = worker.poll(wait=0)
    worker.acquire(work)
    with listening(base.removesuffix("/factory"), worker._token()) as listener:
        listener.wait(lambda each: each.last)
        ask = {"action_class": "shared-write", "proposal": DIFF, "summary": "publish wants to commit"}
        asked = worker.request_approval(work, **ask)
        house.decide(UUID(asked.approval_id))
        cancel_run(house.world.operator, run_id=run_id, reason="stop")
        publish("outbox")
        listener.wait(lambda each: any('"toState":"Cancelling"' in one["data"] for one in each.events), 15)
        told = [one["event"].rsplit(".", 1)[-1] for one in listener.events]
        assert told.index("approval-requested") < told.index("approval-decided")
        last = json.loads(listener.events[-1]["data"])
        assert (last["runid"], last["data"]["cause"]) == (str(run_id), "CancelRequested")
    assert worker.acquire(work).cancel_requested


@pytest.mark.requirement("WAPI-06")
def test_no_call_of_a_holder_is_without_its_token(base, house, worker):
    house.run("single")
    [work] = worker.poll(wait=0)
    for name in ("lease", "receipts", "approvals", "authorizations", "outcome"):
        body = {"leaseId": work.fence["leaseId"]}
        answer = call(base, "POST", f"/attempts/{work.attempt_id}/{name}", body, worker._token())
        assert answer.status_code == 400, name
        assert "/fencingToken" in {error["pointer"] for error in answer.json()["errors"]}


def test_each_receipt_and_artifact_is_answered_by_itself(base, house, worker):
    run_id = house.run()
    [work] = worker.poll(5)
    worker.acquire(work)
    good, faulty = receipt(), receipt(occurredAt="yesterday")
    path = f"/attempts/{work.attempt_id}"
    unkept = receipt(details={"text": "a\x00b"}) | {"a\x00b": 1}
    sent = {**work.fence, "receipts": [good, faulty, 7, good, good | {"quantities": None}, unkept]}
    answer = call(base, "POST", f"{path}/receipts", sent, worker._token())
    assert (answer.status_code, answer.json()["recorded"]) == (200, 1)
    told = [(each["pointer"], each["result"], each.get("code")) for each in answer.json()["receipts"]]
    assert told == [
        ("/receipts/0", "accepted", None),
        ("/receipts/1", "refused", "invalid-receipt"),
        ("/receipts/2", "refused", "invalid-receipt"),
        ("/receipts/3", "repeat", None),
        ("/receipts/4", "refused", "receipt-conflict"),
        ("/receipts/5", "refused", "invalid-receipt"),
    ]
    assert answer.json()["receipts"][1]["receiptId"] == faulty["receiptId"]
    artifacts = [{"uri": "s3://a", "hash": "sha256:" + "ab" * 32, "size": 1}, "s3://b"]
    told = {"outcome": "Succeeded", "failureClass": None, "reason": None, "output": 1, "artifacts": artifacts}
    body = {**work.fence, **told, "outcomeHash": digest(told), "receipts": [faulty, receipt()]}
    first = call(base, "POST", f"{path}/outcome", body, worker._token())
    assert (first.status_code, house.state(run_id)) == (200, "Completed")
    [no] = first.json()["refusedReceipts"]
    assert (no["pointer"], no["code"], no["provider"]) == ("/receipts/0", "invalid-receipt", "factory-tools")
    assert [each["pointer"] for each in first.json()["refusedArtifacts"]] == ["/artifacts/1"]
    assert call(base, "POST", f"{path}/outcome", body, worker._token()).json() == first.json()


@pytest.mark.parametrize("number", ["1e400", "-1e400", "9" * 5000, "-" + "9" * 41, "[" * 490 + "]" * 490])
def test_an_outcome_counts_whatever_number_one_of_its_receipts_holds(base, house, worker, number):
    run_id = house.run()
    [work] = worker.poll(5)
    worker.acquire(work)
    body = {**outcome(work, 1), "receipts": [receipt(details={"n": "here"}), receipt()]}
    sent = json.dumps(body).replace('"here"', number)
    headers = {"Authorization": f"Bearer {worker._token()}", "Content-Type": "application/json"}
    path = f"{base}/attempts/{work.attempt_id}/outcome"
    answer = httpx.post(path, content=sent, headers=headers, timeout=30)
    assert (answer.status_code, house.state(run_id)) == (200, "Completed"), answer.text
    assert [each["pointer"] for each in answer.json()["refusedReceipts"]] == ["/receipts/0"]
    assert httpx.post(path, content=sent, headers=headers, timeout=30).json() == answer.json()


def test_a_refused_outcome_says_that_its_receipts_were_kept(base, house, worker):
    house.run("single")
    [work] = worker.poll(wait=0)
    worker.acquire(work)
    house.let_lapse(work.fence["leaseId"])
    worker.poll(wait=0)  # which recovers what has lapsed
    told = {**outcome(work, 1), "receipts": [receipt()]}
    answer = call(base, "POST", f"/attempts/{work.attempt_id}/outcome", told, worker._token())
    assert (answer.status_code, answer.json()["receiptsRecorded"]) == (409, 1)
    late = {**work.fence, "receipts": [receipt()]}
    answer = call(base, "POST", f"/attempts/{work.attempt_id}/receipts", late, worker._token())
    [taken] = answer.json().pop("receipts")
    assert (answer.status_code, taken["result"]) == (202, "accepted")
    assert (answer.json()["recorded"], answer.json()["superseded"]) == (1, True)


def test_a_draining_worker_is_offered_nothing(base, house, worker):
    worker.drain()
    house.run("single")
    assert worker.poll(wait=1) == []


def test_who_waits_when_the_process_stops_is_told_that_there_is_nothing(house: House, caplog) -> None:
    """A connection that broke would look like an outage, and each one would fill the log with a traceback."""
    token, found = worker_token("worker:w1", pool=house.pool), list[Any]()
    with serving() as url:
        client = WorkerClient(f"{url}/factory", lambda: token, "w1", patience=5)
        client.register(["*/*"], 4, "1.0")
        waiting = threading.Thread(target=lambda: found.append(client.poll(wait=20)))
        waiting.start()
        time.sleep(0.5)
    waiting.join(10)
    client.close()
    assert found == [[]]
    assert "Exception in ASGI application" not in caplog.text
