"""Projects over HTTP, as callers see them."""

from uuid import UUID, uuid4

import jsonschema
import pytest
from drf_spectacular.generators import SchemaGenerator

from projects.commands import add_member
from projects.commands.inputs import NewMember
from tests.support import evidence
from tests.support.api import Api, problem
from tests.support.world import World, context_of, subject_of, world

pytestmark = pytest.mark.slow

BODY = {
    "slug": "second",
    "name": "The second",
    "environments": [{"slug": "staging"}, {"slug": "production", "name": "Production"}],
    "members": [{"subject": "ann@example.org", "email": "ann@example.org", "roles": ["Reviewer"]}],
}


@pytest.fixture
def w(tenant_id: str) -> World:
    return world(tenant_id)


@pytest.fixture
def wide(w):
    """A token of the tenant as a whole."""
    return Api.as_(context_of(subject_of(w.tenant, "tenant_admin"), w.tenant, None))


@pytest.fixture
def api(w):
    return Api.as_(w.workspace_admin)


@pytest.mark.requirement("PRJ-01")
def test_onboards_a_project(w, wide):
    answer = wide.post("/factory/projects", BODY)
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert answer["Location"] == f"/factory/projects/{made['projectId']}"
    assert (made["slug"], made["name"], made["state"], made["version"]) == (
        "second",
        "The second",
        "Active",
        1,
    )
    assert set(made["environments"]) == {"staging", "production"}
    assert set(made["members"]) == {"ann@example.org"}
    read = wide.get(answer["Location"])
    told = {k: v for k, v in made.items() if k not in ("environments", "members")}
    assert read.json() == told | {"inUse": {"heldAttempts": 0, "openRuns": 0}}
    assert evidence.violations(w.tenant) == []


def test_onboards_once_under_a_key(w, wide):
    first = wide.post("/factory/projects", BODY, Idempotency_Key="k1")
    again = wide.post("/factory/projects", BODY, Idempotency_Key="k1")
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert (first.get("Idempotent-Replayed"), again.get("Idempotent-Replayed")) == (None, "true")
    other = wide.post("/factory/projects", {**BODY, "slug": "third"}, Idempotency_Key="k1")
    assert problem(other)["type"].endswith("/idempotency-conflict")


def test_points_at_every_fault_of_a_body(wide):
    told = problem(
        wide.post(
            "/factory/projects",
            {
                "slug": "second",
                "name": "The second",
                "tenantId": "other",
                "environments": [{"slug": "a", "colour": "red"}],
                "members": [{"subject": "ann", "roles": ["King"]}],
            },
        )
    )
    assert told["status"] == 400
    assert {fault["pointer"] for fault in told["errors"]} == {
        "/tenantId",
        "/environments/0/colour",
        "/members/0/roles/0",
    }


def test_points_at_duplicates(wide):
    body = {**BODY, "environments": [{"slug": "a"}, {"slug": "a"}], "members": BODY["members"] * 2}
    told = problem(wide.post("/factory/projects", body))
    assert [fault["pointer"] for fault in told["errors"]] == ["/environments/1/slug", "/members/1/subject"]


def test_offers_no_role_of_the_whole_tenant_in_a_project(w, api):
    told = problem(
        api.post(f"/factory/projects/{w.project}/members", {"subject": "eve", "roles": ["PlatformAdmin"]})
    )
    assert (told["status"], told["errors"][0]["pointer"]) == (400, "/roles/0")


def test_refuses_a_name_that_is_taken(wide):
    told = problem(wide.post("/factory/projects", {**BODY, "slug": "main"}))
    assert (told["status"], told["type"]) == (409, "/factory/problems/project-exists")


@pytest.mark.parametrize("member", ["requester", "reviewer", "operator", "auditor", "workspace_admin"])
def test_refuses_onboarding_by_who_may_not(w, member):
    told = problem(Api.as_(getattr(w, member)).post("/factory/projects", BODY))
    assert told["status"] == 403


def test_lists_the_projects_that_the_scope_includes(w, wide, api):
    wide.post("/factory/projects", BODY)
    everything = wide.get("/factory/projects").json()
    assert [item["slug"] for item in everything["items"]] == ["second", "main"]
    assert set(everything) == {"items", "next", "asOf"}
    assert [item["slug"] for item in api.get("/factory/projects").json()["items"]] == ["main"]
    first = wide.get("/factory/projects?limit=1").json()
    second = wide.get(f"/factory/projects?limit=1&cursor={first['next']}").json()
    assert [first["items"][0]["slug"], second["items"][0]["slug"], second["next"]] == ["second", "main", None]


def test_answers_not_modified_while_nothing_changed(w, api):
    path = f"/factory/projects/{w.project}"
    tag = api.get(path)["ETag"]
    assert api.get(path, If_None_Match=tag).status_code == 304
    api.post(f"{path}/suspend", {"reason": "Audit"})
    assert api.get(path, If_None_Match=tag).status_code == 200


def test_suspends_and_resumes(w, api):
    path = f"/factory/projects/{w.project}"
    suspended = api.post(f"{path}/suspend", {"reason": "Audit"})
    assert suspended.status_code == 200, suspended.content
    body = suspended.json()
    assert (body["state"], body["suspensionReason"], body["version"]) == ("Suspended", "Audit", 2)
    assert body["suspendedAt"]
    told = problem(api.post(f"{path}/suspend", {"reason": "Again"}))
    assert (told["status"], told["type"]) == (409, "/factory/problems/transition-refused")
    resumed = api.post(f"{path}/resume", {"reason": "Over"}).json()
    assert (resumed["state"], resumed["suspendedAt"], resumed["suspensionReason"]) == ("Active", None, "")
    for body in ({}, {"reason": ""}, {"reason": " "}, {"reason": 3}, {"reason": "x", "more": 1}):
        assert api.post(f"{path}/suspend", body).status_code == 400


def test_adds_and_lists_environments(w, api):
    path = f"/factory/projects/{w.project}/environments"
    made = api.post(path, {"slug": "lab", "name": "The lab"})
    assert made.status_code == 201, made.content
    assert [e["slug"] for e in api.get(path).json()["items"]] == ["lab", "production", "staging"]
    assert problem(api.post(path, {"slug": "lab"}))["status"] == 409
    assert api.post(path, {"slug": "bare"}).json()["name"] == "bare"
    assert problem(api.post(path, {"slug": "The Lab"}))["errors"][0]["pointer"] == "/slug"


def test_adds_changes_and_removes_a_member(w, api):
    path = f"/factory/projects/{w.project}/members"
    made = api.post(
        path, {"subject": "ann", "displayName": "Ann", "roles": ["Reviewer"], "grants": ["audit"]}
    )
    assert made.status_code == 201, made.content
    ann = made.json()
    assert (ann["person"], ann["kind"], ann["state"], ann["grants"]) == ("ann", "person", "Active", ["audit"])
    one = f"{path}/{ann['memberId']}"
    changed = api.call("PATCH", one, {"roles": ["Operator"], "version": ann["version"]})
    assert (changed.status_code, changed.json()["roles"], changed.json()["grants"]) == (200, ["Operator"], [])
    stale = api.call("PATCH", one, {"roles": ["Observer"], "version": ann["version"]})
    assert problem(stale)["type"] == "/factory/problems/version-mismatch"
    assert api.call("DELETE", one).status_code == 204
    assert problem(api.call("DELETE", one))["type"] == "/factory/problems/member-removed"
    assert "ann" not in {m["subject"] for m in api.get(path).json()["items"]}
    removed = api.get(f"{path}?state=Removed").json()["items"]
    assert [(m["subject"], m["state"]) for m in removed] == [("ann", "Removed")]
    assert removed[0]["removedAt"]
    assert api.get(f"{path}?state=Gone").status_code == 400
    assert api.get(f"{path}?role=Reviewer").status_code == 400


def test_a_removed_member_is_refused_at_once(w, api):
    observer = Api.as_(w.observer)
    path = f"/factory/projects/{w.project}"
    assert observer.get(path).status_code == 200
    assert api.call("DELETE", f"{path}/members/{w.memberships['observer']}").status_code == 204
    assert problem(observer.get(path))["status"] == 403


def test_members_of_the_whole_tenant_are_seen_but_not_managed_here(w, api, wide):
    made = add_member(w.system(), project_id=None, member=NewMember("boss@example.org", ("Observer",)))
    path = f"/factory/projects/{w.project}/members"
    assert made in {m["memberId"] for m in api.get(path).json()["items"]}
    for caller in (api, wide):
        assert problem(caller.call("DELETE", f"{path}/{made}"))["status"] == 404


def routes(project, member):
    base = f"/factory/projects/{project}"
    reason, standing = {"reason": "Because"}, {"roles": ["Observer"], "version": 1}
    return [
        ("GET", base, None),
        ("POST", f"{base}/suspend", reason),
        ("POST", f"{base}/resume", reason),
        ("GET", f"{base}/environments", None),
        ("POST", f"{base}/environments", {"slug": "lab"}),
        ("GET", f"{base}/members", None),
        ("POST", f"{base}/members", {"subject": "eve", "roles": ["Observer"]}),
        ("PATCH", f"{base}/members/{member}", standing),
        ("DELETE", f"{base}/members/{member}", None),
    ]


@pytest.mark.requirement("IDN-10")
def test_another_tenants_or_projects_things_are_not_found_on_any_route(w, wide):
    other = world(f"{w.tenant}-b")
    second = wide.post(
        "/factory/projects", {**BODY, "members": [{"subject": "bob", "roles": ["WorkspaceAdmin"]}]}
    )
    neighbour = Api.as_(context_of("bob", w.tenant, UUID(second.json()["projectId"])))
    strangers = [Api.as_(other.workspace_admin), Api.as_(other.platform_admin), neighbour]
    before = evidence.counts(w.observer)
    for stranger in strangers:
        for method, path, body in routes(w.project, w.memberships["observer"]):
            told = problem(stranger.call(method, path, body))
            assert told["status"] == 404, (method, path)
    for method, path, body in routes(uuid4(), uuid4()):
        assert wide.call(method, path, body).status_code == 404, (method, path)
    assert evidence.counts(w.observer) == before


def test_every_route_needs_a_token_and_its_scope(w):
    reads = Api.as_(w.workspace_admin, scopes=["factory.projects.read"])
    writes = Api.as_(w.workspace_admin, scopes=["factory.projects.write"])
    every = [*routes(w.project, w.memberships["observer"]), ("GET", "/factory/projects", None)]
    for method, path, body in [*every, ("POST", "/factory/projects", BODY)]:
        assert Api().call(method, path, body).status_code == 401, (method, path)
        narrow = writes if method == "GET" else reads
        assert problem(narrow.call(method, path, body))["type"].endswith("/insufficient-scope"), (
            method,
            path,
        )


def test_refuses_methods_that_are_not_there(w, api):
    for method in ("PUT", "DELETE"):
        assert problem(api.call(method, f"/factory/projects/{w.project}", {}))["status"] == 405


def test_answers_are_what_the_schema_says(w, wide, api):
    document = SchemaGenerator().get_schema(request=None, public=True)
    base = f"/factory/projects/{w.project}"
    template = "/factory/projects/{project_id}"
    onboarded = wide.post("/factory/projects", BODY)
    added = api.post(f"{base}/members", {"subject": "ann", "roles": ["Reviewer"]})
    answers = [
        (onboarded, "/factory/projects", "post", "201"),
        (added, f"{template}/members", "post", "201"),
        (api.post(f"{base}/environments", {"slug": "lab"}), f"{template}/environments", "post", "201"),
        (api.get("/factory/projects"), "/factory/projects", "get", "200"),
        (api.get(base), template, "get", "200"),
        (api.post(f"{base}/suspend", {"reason": "x"}), f"{template}/suspend", "post", "200"),
        (api.get(base), template, "get", "200"),
        (api.post(f"{base}/resume", {"reason": "x"}), f"{template}/resume", "post", "200"),
        (api.get(f"{base}/environments"), f"{template}/environments", "get", "200"),
        (api.get(f"{base}/members"), f"{template}/members", "get", "200"),
    ]
    sent = document["components"]["schemas"]["OnboardingBodyRequest"]
    assert sent["additionalProperties"] is False
    for answer, path, method, status in answers:
        assert str(answer.status_code) == status, answer.content
        content = document["paths"][path][method]["responses"][status]["content"]
        whole = {**content["application/json"]["schema"], "components": document["components"]}
        jsonschema.Draft202012Validator(
            whole, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
        ).validate(answer.json())
