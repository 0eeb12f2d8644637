"""What a caller is told when something is refused or goes wrong."""

from uuid import uuid4

import pytest

from factory.kernel.tenancy import reading
from tests.support.api import Api, problem
from tests.support.world import World, second_world, world

pytestmark = pytest.mark.slow

THINGS = "/factory/test/things"


@pytest.fixture(autouse=True)
def _routes(settings):
    settings.ROOT_URLCONF = "tests.rest.urls"


@pytest.fixture
def home(tenant_id) -> World:
    return world(tenant_id)


@pytest.fixture
def requester(home) -> Api:
    return Api.as_(home.requester)


def write(api: Api, body, **headers):
    return api.post(THINGS, body, **{"Idempotency_Key": "k-1", **headers})


@pytest.mark.requirement("API-22")
def test_tells_each_refusal_in_one_form(requester, home):
    bad = write(
        requester, {"name": "x" * 21, "limits": {"maxCostUsd": "5", "maxMinutes": 0}, "tenantId": "t"}
    )
    assert problem(bad) == {
        "type": "/factory/problems/invalid-input",
        "title": "The input is not valid",
        "status": 400,
        "detail": "The input is not valid.",
        "instance": THINGS,
        "errors": [
            {"pointer": "/tenantId", "detail": "There is no such member."},
            {"pointer": "/name", "detail": "Ensure this field has no more than 20 characters."},
            {"pointer": "/limits/maxCostUsd", "detail": "A valid number is required."},
            {"pointer": "/limits/maxMinutes", "detail": "Ensure this value is greater than or equal to 1."},
        ],
    }
    nobody = Api().get(THINGS)
    assert nobody["WWW-Authenticate"] == "Bearer"
    assert problem(nobody) == {
        "type": "/factory/problems/unauthenticated",
        "title": "The caller is not known",
        "status": 401,
        "detail": "Send a bearer token in the Authorization header.",
        "instance": THINGS,
    }
    assert problem(Api("a.b.c").get(THINGS))["type"] == "/factory/problems/invalid-token"
    assert problem(Api.as_(home.requester, scopes=[]).get(THINGS)) == {
        "type": "/factory/problems/insufficient-scope",
        "title": "The token lacks a scope",
        "status": 403,
        "detail": "TestRead needs the scope factory.runs.read.",
        "instance": THINGS,
    }
    observer = write(Api.as_(home.observer), {"name": "n"})
    assert problem(observer)["type"] == "/factory/problems/insufficient-role"
    refused = requester.get("/factory/test/faults/unprocessable")
    assert problem(refused) == {
        "type": "/factory/problems/unprocessable",
        "title": "The request cannot be accepted",
        "status": 422,
        "detail": "Not now.",
        "instance": "/factory/test/faults/unprocessable",
        "state": "Closing",
        "errors": [{"pointer": "/limits/maxCostUsd", "detail": "Too much."}],
    }
    assert problem(requester.call("DELETE", THINGS))["status"] == 405
    assert problem(requester.call("OPTIONS", THINGS))["status"] == 405
    assert problem(requester.get("/factory/nowhere"))["type"] == "/factory/problems/not-found"


@pytest.mark.parametrize(
    ("kind", "slug", "wait"),
    [
        ("away", "database-unavailable", "5"),
        ("locked", "busy", "1"),
        ("stood-still", "database-unavailable", "5"),
    ],
)
def test_answers_503_and_when_to_come_back(requester, kind, slug, wait):
    response = requester.get(f"/factory/test/faults/{kind}")
    assert (response.status_code, response["Retry-After"]) == (503, wait)
    assert problem(response)["type"] == f"/factory/problems/{slug}"
    assert b"SELECT" not in response.content


def test_tells_nothing_of_a_defect(requester):
    response = requester.get("/factory/test/faults/defect")
    assert problem(response)["type"] == "/factory/problems/internal-error"
    assert b"hunter2" not in response.content
    assert b"Traceback" not in response.content


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"name": "a", "name": "b"}', 400),
        (b'{"name": NaN}', 400),
        (b'{"name": "a", "limits": {"maxCostUsd": 1e400}}', 400),
        (b'{"name": "a\\u0000"}', 400),
        (b'{"name": "\\ud800"}', 400),
        (b"\xff\xfe", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"7", 400),
        (b"null", 400),
        (b"", 400),
        (b"[" * 100_000, 400),
        (b'{"name":' * 200 + b"1" + b"}" * 200, 400),
        (b'{"name": 7}', 400),
        (b'{"name": true}', 400),
        (b'{"name": "a", "flag": "true"}', 400),
        (b'{"name": "a", "flag": 1}', 400),
        (b'{"name": "a", "limits": {"maxMinutes": "5"}}', 400),
        (b'{"name": "a", "limits": {"maxMinutes": 5.0}}', 400),
        (b'{"name": "a", "limits": {"maxMinutes": 1' + b"0" * 5000 + b"}}", 400),
        (b'{"name": "a", "limits": {"maxCostUsd": -1}}', 400),
        (b'{"name": "a", "limits": {"maxCostUsd": 1.1234567}}', 400),
        (b'{"name": "a", "id": 5}', 400),
        (b'{"name": "a", "at": "2026-01-01T00:00:00"}', 400),
        (b'{"name": "a", "at": "2026-13-01T00:00:00Z"}', 400),
        (b'{"name": "a", "at": "9999-12-31T23:59:59-23:59"}', 400),
        (b'{"name": "a", "at": "0001-01-01T00:00:00+23:59"}', 400),
        (b'{"name": "' + b"a" * 1024 * 1024 + b'"}', 413),
        (b'{"name": "a", "limits": {"maxCostUsd": 12.5}, "at": "2026-01-01T00:00:00Z"}', 202),
    ],
    ids=range(29),
)
def test_reads_a_body_strictly(requester, body, status):
    response = write(requester, body)
    assert response.status_code == status, response.content
    if status != 202:
        problem(response)


def test_takes_json_only(requester):
    assert (
        problem(write(requester, b"name=a", Content_Type="application/x-www-form-urlencoded"))["status"]
        == 415
    )
    assert problem(write(requester, b"{}", Content_Type="text/plain"))["status"] == 415
    assert requester.get(THINGS, Accept="text/html")["Content-Type"] == "application/json"


@pytest.mark.requirement("API-16")
@pytest.mark.parametrize("key", ["", " ", "a b", "é", "x" * 256])
def test_wants_a_visible_idempotency_key(requester, key):
    assert problem(write(requester, {"name": "a"}, Idempotency_Key=key))["status"] == 400


def test_another_tenants_thing_looks_like_no_thing_at_all(requester, home, tenant_id):
    other = second_world(tenant_id)
    mine, theirs = _a_journal_entry(home), _a_journal_entry(other)
    assert requester.get(f"{THINGS}/{mine}").status_code == 200
    foreign, missing = requester.get(f"{THINGS}/{theirs}"), requester.get(f"{THINGS}/{uuid4()}")
    told = [problem(foreign), problem(missing)]
    for body in told:
        body.pop("instance")
    assert told[0] == told[1]
    assert told[0]["status"] == 404
    assert requester.get(f"{THINGS}/not-a-uuid").status_code == 404


def _a_journal_entry(of: World):
    from factory.kernel.models import JournalEntry

    with reading(of.requester):
        return JournalEntry.objects.values_list("id", flat=True)[0]


@pytest.mark.requirement("OBS-10")
def test_one_id_ties_a_request_together(requester):
    brought = str(uuid4())
    assert requester.get(THINGS, X_Request_ID=brought)["X-Request-ID"] == brought
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert requester.get(THINGS, traceparent=trace)["X-Request-ID"] == "0af76519-16cd-43dd-8448-eb211c80319c"
    for insane in ("x", "a\tb", "z" * 36, "<script>"):
        assert requester.get(THINGS, X_Request_ID=insane)["X-Request-ID"] != insane


@pytest.mark.requirement("SEC-02")
def test_answers_are_not_to_be_stored(requester):
    assert requester.get(THINGS)["Cache-Control"] == "no-store"
    assert Api().get(THINGS)["Cache-Control"] == "no-store"
