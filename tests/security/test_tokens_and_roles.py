"""Who may call what, tried on every route: without a token, with the wrong one, with too small a one."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from factory.identity.issuer import issue, issue_person_token
from factory.kernel.commanding import commands
from factory.kernel.context import Context
from factory.kernel.permissions import table
from tests.security.scene import BODIES, Place, Route, Scene, routes
from tests.support.api import Api, problem, token_of, worker_token
from tests.support.evidence import counts
from tests.support.world import ALL, context_of, subject_of

CALLS = [
    pytest.param(route, method, id=f"{method} {route.path}")
    for route in routes()
    for method in route.operations
]
ROLES = ("Requester", "Reviewer", "Operator", "WorkspaceAdmin", "PlatformAdmin", "Observer")


def send(place: Place, token: str, route: Route, method: str) -> Any:
    operation = route.operations[method]
    body = BODIES[operation](place, place.ids) if operation in BODIES else None
    return Api(token).call(method, route.url(place.ids), body, Idempotency_Key=str(uuid4()))


def tokens_that_nobody_takes(ctx: Context) -> dict[str, str]:
    claims = {"tenant_id": ctx.tenant_id, "project_id": str(ctx.project_id), "scope": " ".join(ALL)}
    good = token_of(ctx)
    head, body, signature = good.split(".")
    return {
        "none": "",
        "expired": token_of(ctx, ttl_seconds=-3600),
        "another audience": issue(
            subject=ctx.actor.subject, audience="somebody-else", ttl_seconds=600, claims=claims
        ),
        "no signature": f"{head}.{body}.",
        "a broken signature": f"{head}.{body}.{signature[::-1]}",
        "no token at all": "x" * 9000,
    }


@pytest.mark.requirement("IDN-03", "SEC-01")
@pytest.mark.parametrize(("route", "method"), CALLS)
def test_nobody_unknown_gets_in(scene: Scene, route: Route, method: str) -> None:
    home = scene.home
    for name, token in tokens_that_nobody_takes(home.everybody).items():
        answer = send(home, token, route, method)
        assert answer.status_code == 401, name
        assert answer["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.requirement("SEC-13")
@pytest.mark.parametrize(("route", "method"), CALLS)
def test_a_worker_has_no_business_here(scene: Scene, route: Route, method: str) -> None:
    answer = send(scene.home, worker_token(pool=scene.home.house.pool), route, method)
    assert answer.status_code == 403
    assert problem(answer)["type"].endswith("/forbidden")


@pytest.mark.requirement("IDN-04", "IDN-05", "IDN-06", "IDN-07")
@pytest.mark.parametrize(("route", "method"), CALLS)
def test_a_token_reaches_as_far_as_its_scopes(scene: Scene, route: Route, method: str) -> None:
    home, needed = scene.home, table[route.operations[method]].scope
    assert needed, "an operation of the REST surface needs a scope"
    answer = send(home, token_of(home.everybody, scopes=ALL - {needed}), route, method)
    assert answer.status_code == 403
    assert problem(answer)["type"].endswith("/insufficient-scope")


@pytest.mark.parametrize(("route", "method"), CALLS)
def test_a_scope_is_no_role(scene: Scene, route: Route, method: str) -> None:
    """Every role that the table does not name is refused, with a token narrowed to just that one."""
    home, needed = scene.home, table[route.operations[method]].roles
    if needed is None:
        return
    for role in set(ROLES[:4]) - needed:
        answer = send(home, token_of(home.everybody, roles=[role]), route, method)
        assert answer.status_code == 403, (role, answer.content)
        assert problem(answer)["type"].endswith("/insufficient-role"), role


@pytest.mark.requirement("IDN-08")
@pytest.mark.parametrize(
    ("operation", "who"),
    [
        ("CreateBudget", "requester"),
        ("CreateBudget", "observer"),
        ("ChangeBudgetAmount", "reviewer"),
        ("PublishPricingRevision", "operator"),
        ("CancelRun", "observer"),
        ("CancelRun", "reviewer"),
        ("DecideApproval", "observer"),
        ("DecideApproval", "operator"),
    ],
)
def test_where_the_command_judges_the_role_it_does(scene: Scene, operation: str, who: str) -> None:
    home = scene.home
    ctx = context_of(subject_of(home.tenant, who), home.tenant, home.project)
    before = counts(home.system())
    route, method = next((r, m) for r in routes() for m, o in r.operations.items() if o == operation)
    answer = send(home, token_of(ctx, scopes=ALL), route, method)
    assert answer.status_code == 403, answer.content
    after = counts(home.system())
    assert after[:2] == before[:2]


def test_roles_in_a_token_lift_nobody(scene: Scene) -> None:
    home = scene.home
    ctx = context_of(subject_of(home.tenant, "observer"), home.tenant, home.project)
    token = token_of(ctx, scopes=ALL, roles=list(ROLES))
    for route, method in ((r, m) for r in routes() for m in r.operations):
        roles = table[route.operations[method]].roles
        if roles is not None and "Observer" not in roles:
            assert send(home, token, route, method).status_code == 403, route.path


def test_a_token_opens_no_other_tenant_and_no_other_project(scene: Scene) -> None:
    subject = scene.home.everybody.actor.subject
    for other in (scene.foreign, scene.sister):
        token = issue_person_token(subject, tenant_id=other.tenant, project_id=other.project, scopes=ALL)
        nowhere = issue_person_token(subject, tenant_id=f"t-{uuid4().hex}", project_id=uuid4(), scopes=ALL)
        told = [problem(Api(one).get("/factory/runs")) for one in (token, nowhere)]
        assert told[0] == told[1]
        assert told[0]["status"] == 403


@pytest.mark.requirement("IDN-01", "IDN-02")
def test_a_scope_named_anywhere_else_is_not_believed(scene: Scene) -> None:
    home, foreign = scene.home, scene.foreign
    headers = {"X_Tenant_ID": foreign.tenant, "X_Project_ID": str(foreign.project), "X_Subject": "root"}
    plain = Api.as_(home.everybody).get("/factory/runs").json()["items"]
    assert Api.as_(home.everybody).get("/factory/runs", **headers).json()["items"] == plain
    for member in ("tenantId", "tenant_id", "projectId", "requestedBy", "actor", "roles"):
        body = home.house.payload() | {member: foreign.tenant}
        answer = Api.as_(home.everybody).post("/factory/runs", body, Idempotency_Key=str(uuid4()))
        assert answer.status_code == 400, member
        assert Api.as_(home.everybody).get(f"/factory/usage?{member}={foreign.tenant}").status_code == 400


def test_the_permission_table_knows_every_command_and_every_route() -> None:
    assert set(commands()) - set(table) - {name for name in commands() if name.startswith("Test")} == set()
    named = {operation for route in routes() for operation in route.operations.values()}
    assert named - set(table) == set()
    for operation in named:
        assert table[operation].kinds <= {"person", "service"}, operation
    for name, entry in table.items():
        assert entry.kinds, name
        if entry.kinds & {"person", "service"} and not name.startswith("Test"):  # other tests' own
            assert entry.scope, f"{name} is open to people and needs a scope"


def test_one_without_an_entry_is_closed(scene: Scene) -> None:
    from factory.kernel.errors import Forbidden
    from factory.kernel.permissions import authorize

    with pytest.raises(Forbidden, match="no permission table"):
        authorize(replace(scene.home.everybody), "SomethingNew")
