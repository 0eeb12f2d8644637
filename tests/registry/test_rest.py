"""The registry over HTTP."""

import pytest

from factory.kernel.hashing import digest, digest_bytes
from registry.manifest.closure import ClosureFile, release_hash
from registry.publication.resolving import resolve
from tests.registry.support import Registry
from tests.support.api import Api, problem
from tests.support.queries import within_budget

pytestmark = pytest.mark.slow


def submit(r, key="k-1", ctx=None, **changes):
    body = {
        "asset": "sample",
        "version": "1.0.0",
        "repository": r.repository.url,
        "commit": changes.pop("commit", None) or r.repository.commit(),
        **changes,
    }
    return Api.as_(ctx or r.w.requester).post("/factory/releases", body, Idempotency_Key=key)


@pytest.mark.requirement("REG-02")
def test_a_candidate_goes_the_whole_way_over_http(r):
    answer = submit(r)
    assert answer.status_code == 202, answer.content
    told = answer.json()
    assert (told["state"], told["resolution"]["state"], told["hash"]) == ("Draft", "pending", None)
    path = answer["Location"]
    assert path == f"/factory/releases/{told['releaseId']}"
    resolve(r.w.tenant, told["releaseId"])
    api = Api.as_(r.w.requester)
    told = api.get(path).json()
    assert told["resolution"] == {
        "state": "resolved",
        "attempts": 0,
        "nextAttemptAt": None,
        "error": "",
        "faults": [],
    }
    recorded = api.post(
        f"{path}/evaluations",
        {
            "releaseHash": told["hash"],
            "suite": "smoke",
            "suiteVersion": "1.0.0",
            "scores": {"found": 1.0},
            "evidenceHash": digest("evidence"),
        },
    )
    assert (recorded.status_code, recorded.json()["verdict"]) == (201, "pass")
    reviewed = api.post(f"{path}/review", {})
    assert (reviewed.status_code, reviewed.json()["state"]) == (202, "InReview")
    refused = api.get(f"{path}/manifest")
    assert (refused.status_code, problem(refused)["type"]) == (422, "/factory/problems/release-not-loadable")
    r.decide(told["releaseId"])
    told = api.get(path).json()
    assert (told["state"], told["aliases"], told["evaluations"][0]["producer"]) == (
        "Published",
        ["latest"],
        r.w.requester.actor.subject,
    )
    assert told["approvalId"] == reviewed.json()["approvalId"]


@pytest.mark.requirement("REG-13")
def test_what_is_loaded_recomputes_to_the_release_hash(r):
    release_id = r.published()
    api = Api.as_(r.w.observer)
    told = api.get(f"/factory/releases/{release_id}/manifest").json()
    entries = [
        ClosureFile(e["kind"], e["id"], e["path"], e["sha256"], e["size"], e["sideEffectClass"])
        for e in told["entries"]
    ]
    root = release_hash(told["asset"], told["version"], told["sourceCommit"], entries)
    assert root == told["hash"] == r.view(release_id).hash
    manifest = next(e for e in told["entries"] if e["kind"] == "manifest")
    for entry in [*told["files"], manifest]:
        loaded = api.get(
            f"/factory/releases/{release_id}/files/{entry['sha256'].removeprefix('sha256:')}",
            Accept="application/octet-stream",
        )
        assert loaded["Content-Type"] == "application/octet-stream"
        assert digest_bytes(loaded.content) == entry["sha256"]
        assert len(loaded.content) == entry["size"]


def test_a_file_of_another_release_is_not_there(r):
    first = r.published()
    other = r.resolved("1.1.0", modelProfiles=[{"modelProfileId": "other", "description": "Another."}])
    api = Api.as_(r.w.requester)
    for word in ("0" * 64, "x", "..", "sha256:" + "A" * 64):
        assert api.get(f"/factory/releases/{first}/files/{word}").status_code == 404
    assert api.get(f"/factory/releases/{other}/files/{'0' * 64}").status_code == 422


def test_the_same_key_gives_the_same_release(r):
    commit = r.repository.commit()
    first, again = submit(r, commit=commit), submit(r, commit=commit)
    assert again.status_code == 202
    assert again.json()["releaseId"] == first.json()["releaseId"]
    assert again["Idempotent-Replayed"] == "true"
    other = submit(r, commit=commit, version="1.1.0")
    assert (other.status_code, problem(other)["type"]) == (409, "/factory/problems/idempotency-conflict")
    unkeyed = Api.as_(r.w.requester).post("/factory/releases", {})
    assert unkeyed.status_code == 400


@pytest.mark.parametrize(
    ("change", "status", "pointer"),
    [
        ({"repository": "ext::sh -c touch% x"}, 422, "/repository"),
        ({"repository": "https://169.254.169.254/x"}, 422, "/repository"),
        ({"commit": "main"}, 422, "/commit"),
        ({"asset": "../x"}, 400, "/asset"),
        ({"version": "one"}, 400, "/version"),
        ({"surprise": 1}, 400, "/surprise"),
        ({"state": "Published"}, 400, "/state"),
    ],
)
def test_a_refusal_says_where(r, change, status, pointer):
    answer = submit(r, **{"commit": "a" * 40, **change})
    told = problem(answer)
    assert (answer.status_code, [fault["pointer"] for fault in told["errors"]]) == (status, [pointer])


def test_lists_releases_newest_first(r):
    r.published("1.0.0")
    r.resolved("1.1.0")
    api = Api.as_(r.w.observer)
    with within_budget("GET /releases"):
        told = api.get("/factory/releases").json()
    assert [item["version"] for item in told["items"]] == ["1.1.0", "1.0.0"]
    assert [i["version"] for i in api.get("/factory/releases?state=Published").json()["items"]] == ["1.0.0"]
    assert api.get("/factory/releases?asset=other").json()["items"] == []
    assert api.get("/factory/releases?state=Nothing").status_code == 400
    assert api.get("/factory/releases?_connector=OR").status_code == 400


def test_reads_within_budget(r):
    release_id = r.published()
    api = Api.as_(r.w.observer)
    with within_budget("GET /releases/{id}"):
        answer = api.get(f"/factory/releases/{release_id}")
    assert api.get(f"/factory/releases/{release_id}", If_None_Match=answer["ETag"]).status_code == 304
    with within_budget("GET /releases/{id}/manifest"):
        api.get(f"/factory/releases/{release_id}/manifest")
    with within_budget("GET /assets/{asset}/aliases/{alias}"):
        api.get("/factory/assets/sample/aliases/latest")


def test_moves_and_reads_aliases(r):
    first, second = r.published("1.0.0"), r.published("1.1.0")
    admin, path = Api.as_(r.w.workspace_admin), "/factory/assets/sample/aliases/stable"
    assert admin.get(path).status_code == 404
    made = admin.call("PUT", path, {"releaseId": str(first)})
    assert (made.status_code, made.json()["version"]) == (200, 1), made.content
    at = made.json()["movedAt"]
    moved = admin.call("PUT", path, {"releaseId": str(second), "version": 1})
    assert (moved.json()["version"], moved.json()["releaseId"]) == (2, str(second))
    assert admin.get(f"{path}?at={at}").json()["releaseId"] == str(first)
    assert admin.get(f"{path}?at=yesterday").status_code == 400
    late = admin.call("PUT", path, {"releaseId": str(first), "version": 1})
    assert (late.status_code, problem(late)["type"]) == (409, "/factory/problems/version-mismatch")
    by_requester = Api.as_(r.w.requester).call("PUT", path, {"releaseId": str(first), "version": 2})
    assert by_requester.status_code == 403


def test_takes_releases_out_of_use(r):
    first = r.published("1.0.0")
    operator, path = Api.as_(r.w.operator), f"/factory/releases/{first}"
    in_use = operator.post(f"{path}/deprecate", {"inFlight": "drain", "reason": "old"})
    assert (in_use.status_code, problem(in_use)["type"]) == (409, "/factory/problems/alias-in-use")
    refused = operator.post(f"{path}/revoke", {"inFlight": "later", "reason": "old"})
    assert refused.status_code == 422
    assert [fault["pointer"] for fault in problem(refused)["errors"]] == ["/inFlight"]
    revoked = operator.post(f"{path}/revoke", {"inFlight": "drain", "reason": "leaks"})
    assert (revoked.status_code, revoked.json()["state"], revoked.json()["reason"]) == (
        200,
        "Revoked",
        "leaks",
    )


def test_another_tenants_release_is_not_there(r, tmp_path):
    release_id = r.published()
    other = Registry(f"{r.w.tenant}-b", tmp_path / "b")
    api = Api.as_(other.w.workspace_admin)
    path = f"/factory/releases/{release_id}"
    evaluation = {
        "releaseHash": digest("x"),
        "suite": "smoke",
        "suiteVersion": "1.0.0",
        "scores": {},
        "evidenceHash": digest("x"),
    }
    answers = [
        api.get(path),
        api.get(f"{path}/manifest"),
        api.get(f"{path}/files/{'0' * 64}"),
        api.post(f"{path}/evaluations", evaluation),
        api.post(f"{path}/review", {}),
        api.post(f"{path}/deprecate", {"inFlight": "drain", "reason": "x"}),
        api.post(f"{path}/revoke", {"inFlight": "drain", "reason": "x"}),
        api.get("/factory/assets/sample/aliases/latest"),
        api.call("PUT", "/factory/assets/sample/aliases/latest", {"releaseId": str(release_id)}),
    ]
    assert [answer.status_code for answer in answers] == [404] * len(answers)
    assert api.get("/factory/releases").json()["items"] == []


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_release_cannot_be_written_past_its_commands(r, method):
    release_id = r.resolved()
    answer = Api.as_(r.w.workspace_admin).call(
        method, f"/factory/releases/{release_id}", {"state": "Published"}
    )
    assert answer.status_code == 405
