"""What the client does with late, lost and refusing answers."""

import httpx
import pytest

from runs.worker.client import INSTANCE_HEADER, WorkerClient
from runs.worker.errors import (
    ApiConflict,
    ApiGone,
    ApiLeaseExpired,
    ApiNotFound,
    ApiPolicyDenied,
    ApiRefused,
    Frozen,
    Invalid,
    LeaseLost,
    StaleToken,
    Superseded,
    Unauthorized,
    Unreachable,
)
from runs.worker.wire import Assignment, AttemptReport, digest
from tests.worker.surface import Surface, problem


def assignment(surface: Surface) -> Assignment:
    surface.offer()
    return Assignment.read(surface.offers.pop())


def test_repeats_the_very_same_outcome_when_the_answer_is_lost(
    surface: Surface, client: WorkerClient
) -> None:
    surface.faults["outcome"] = [
        lambda: (0, None),
        lambda: problem(503, "busy"),
        lambda: problem(500, "broken"),
    ]
    client.report(assignment(surface), AttemptReport("Succeeded", output={"tea": "green"}))
    told = surface.got("/outcome")
    assert len(told) == 4
    assert all(body == told[0] for body in told)
    hashed = {key: told[0][key] for key in ("outcome", "failureClass", "reason", "output")}
    assert told[0]["outcomeHash"] == digest(hashed)


def test_gives_up_when_its_patience_ends(surface: Surface) -> None:
    client = WorkerClient(surface.url, lambda: "token", "w1", patience=0.3)
    surface.faults["receipts"] = [lambda: problem(503, "busy")] * 1000
    with pytest.raises(Unreachable):
        client.send_receipts(assignment(surface), [], patience=0.3)
    assert len(surface.got("/receipts")) > 1


def test_says_that_nobody_answers(client: WorkerClient) -> None:
    gone = WorkerClient("http://127.0.0.1:9/factory", lambda: "token", "w1", patience=0.0)
    with pytest.raises(Unreachable):
        gone.register(["*/*"], 1, "0")


@pytest.mark.parametrize(
    ("status", "slug", "kind"),
    [
        (400, "invalid-input", Invalid),
        (401, "unauthenticated", Unauthorized),
        (403, "policy-denied", ApiPolicyDenied),
        (404, "not-found", ApiNotFound),
        (409, "stale-fencing-token", StaleToken),
        (409, "worker-superseded", Superseded),
        (409, "already-decided", ApiConflict),
        (410, "lease-expired", ApiLeaseExpired),
        (410, "approval-expired", ApiGone),
        (413, "too-large", Invalid),
        (422, "unprocessable", Invalid),
        (418, "teapot", ApiRefused),
    ],
)
def test_tells_refusals_apart_by_type(
    surface: Surface, client: WorkerClient, status: int, slug: str, kind: type[ApiRefused]
) -> None:
    surface.faults["outcome"] = [lambda: problem(status, slug)]
    with pytest.raises(kind) as refused:
        client.report(assignment(surface), AttemptReport("Succeeded"))
    assert type(refused.value) is kind
    assert (refused.value.status, refused.value.slug) == (status, slug)


@pytest.mark.parametrize(("status", "slug"), [(409, "conflict"), (410, "gone"), (409, "stale-fencing-token")])
def test_any_no_to_a_renewal_means_that_the_lease_is_lost(
    surface: Surface, client: WorkerClient, status: int, slug: str
) -> None:
    surface.lease = lambda: problem(status, slug)
    with pytest.raises(LeaseLost):
        client.acquire(assignment(surface))


def test_a_frozen_run_is_waited_for_and_its_lease_is_kept(surface: Surface, client: WorkerClient) -> None:
    work, frozen = assignment(surface), lambda: problem(409, "run-frozen")
    surface.faults["outcome"] = [frozen, frozen]
    client.report(work, AttemptReport("Succeeded"))
    assert len(surface.got("/outcome")) == 3
    surface.lease = frozen
    with pytest.raises(Frozen) as refused:
        client.acquire(work, patience=0.0)
    assert not isinstance(refused.value, LeaseLost)


def test_carries_the_instance_that_registration_answered(surface: Surface, client: WorkerClient) -> None:
    client.register(["*/*"], 2, "0.1.0")
    client.poll(0)
    assert [headers.get(INSTANCE_HEADER) for *_, headers in surface.calls] == [None, "i-1"]


def test_counts_the_remaining_time_on_the_servers_clock(surface: Surface, client: WorkerClient) -> None:
    assert 115 < client.acquire(assignment(surface)).remaining <= 121


def test_asks_for_approval_of_exactly_the_hash_of_the_proposal(
    surface: Surface, client: WorkerClient
) -> None:
    surface.approval = (
        201,
        {"effect": "require-approval", "approvalId": "p1", "version": 1, "expiresAt": "x"},
    )
    proposal = {"diff": "+ä\n"}
    answer = client.request_approval(
        assignment(surface),
        action_class="shared-write",
        proposal=proposal,
        summary="s",
        checkpoint={"n": 1},
        park=True,
    )
    (body,) = surface.got("/approvals")
    assert (answer.effect, answer.approval_id, answer.decision) == ("require-approval", "p1", None)
    assert body["proposalHash"] == digest(proposal)
    assert body["park"] == {"checkpoint": {"n": 1}}
    assert (body["snapshotId"], body["policyRevision"], body["releaseId"]) == ("s1", "r1", "r1")


def test_never_hands_its_token_to_another_origin() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"hash": "x"})

    client = WorkerClient(
        "http://plane/factory", lambda: "secret", "w1", transport=httpx.MockTransport(answer)
    )
    client.manifest("/factory/releases/1/manifest")
    client.manifest("http://elsewhere/factory/releases/1/manifest")
    assert [str(request.url.host) for request in seen] == ["plane", "elsewhere"]
    assert ["Authorization" in request.headers for request in seen] == [True, False]
