"""Somebody else's id is nobody's id: every route, every method, word for word the same answer."""

import json
import re
from itertools import product
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.messages import get_messages

from factory.kernel.context import Context
from factory.kernel.models import User
from tests.security.scene import (
    BODIES,
    BODILESS,
    Place,
    Route,
    Scene,
    allowed_to,
    console_routes,
    random_id,
    routes,
    runs_of,
    tenant_wide,
)
from tests.support.api import Api
from tests.support.client import Client
from tests.support.evidence import violations
from tests.support.world import context_of, subject_of

ROUTES = routes()
NAMED = [
    pytest.param(route, method, name, id=f"{method} {route.path} {name}")
    for route in ROUTES
    for method in route.operations
    for name in route.params
]
OF_THE_TENANT = {"identity_id", "worker_id", "release_id", "sha256", "asset", "alias", "revision"}
"""What a tenant's projects have in common: another project's is no stranger there."""


def test_every_route_can_be_tried(scene: Scene) -> None:
    """A new parameter or a new body needs a builder before it can be said to be safe."""
    assert len(ROUTES) >= 35
    for route in ROUTES:
        assert set(route.params) <= set(scene.home.ids), f"{route.path}: no builder for its parameters"
        for method, operation in route.operations.items():
            if method in ("POST", "PUT", "PATCH"):
                assert operation in BODIES, f"{method} {route.path}: no builder for the body of {operation}"
            elif method == "DELETE":
                assert operation in BODILESS


def test_the_schema_names_every_route_and_no_other() -> None:
    schema = json.loads(Client().get("/factory/schema").content)
    shape = lambda path: re.sub(r"[{<][^}>]*[}>]", "*", path)  # noqa: E731
    told = {(shape(path), m.upper()) for path, item in schema["paths"].items() for m in item if m in METHODS}
    ours = {(shape(route.path), method) for route in ROUTES for method in route.operations}
    assert ours - told == set()
    assert {(path, m) for path, m in told - ours if not path.startswith("/factory/watch")} == set()


METHODS = {"get", "post", "put", "patch", "delete"}


def normal(answer: Any, *ids: str) -> tuple[int, str]:
    """An answer without what differs from call to call: the ids that were asked for, and the trace."""
    text = answer.content.decode()
    for one in ids:
        text = text.replace(one, "*")
    text = re.sub(r'"traceId": ?"[^"]*"', "", text)
    return answer.status_code, text


def call(place: Place, ctx: Context, route: Route, method: str, ids: dict[str, str]) -> Any:
    operation = route.operations[method]
    body = BODIES[operation](place, ids) if operation in BODIES else None
    headers = {"Idempotency_Key": str(uuid4())} if method == "POST" else {}
    return Api.as_(ctx).call(method, route.url(ids), body, **headers)


@pytest.mark.requirement("IDN-10", "API-17")
@pytest.mark.parametrize(("route", "method", "name"), NAMED)
def test_another_tenants_id_is_no_id(scene: Scene, route: Route, method: str, name: str) -> None:
    home, foreign = scene.home, scene.foreign
    if foreign.ids[name] == home.ids[name]:
        return  # the same word in both tenants names two things: each sees its own
    _same_as_random(home, foreign, route, method, name)


@pytest.mark.requirement("IDN-10")
@pytest.mark.parametrize(("route", "method", "name"), NAMED)
def test_another_projects_id_is_no_id(scene: Scene, route: Route, method: str, name: str) -> None:
    if name in OF_THE_TENANT:
        return
    _same_as_random(scene.home, scene.sister, route, method, name)


def _same_as_random(home: Place, other: Place, route: Route, method: str, name: str) -> None:
    nobody, allowed = random_id(name), allowed_to(home, route.operations[method])
    for ctx in (allowed, tenant_wide(home) if other.tenant != home.tenant else allowed):
        theirs = call(home, ctx, route, method, home.ids | {name: other.ids[name]})
        nothing = call(home, ctx, route, method, home.ids | {name: nobody})
        assert normal(theirs, other.ids[name]) == normal(nothing, nobody)
        if ctx is allowed and (method, name) != ("PUT", "alias"):  # a new alias is made, not missed
            assert theirs.status_code == 404, theirs.content
    wholly = {param: other.ids[param] for param in route.params}
    if other.tenant != home.tenant and len(route.params) > 1 and "asset" not in route.params:
        assert call(home, allowed, route, method, home.ids | wholly).status_code == 404


BODY_IDS = [
    ("SubmitRun", "/factory/runs", "POST", "environmentId", "environment_id"),
    ("SubmitRun", "/factory/runs", "POST", "previousRunId", "run_id"),
    ("SubmitRun", "/factory/runs", "POST", "templateId", "template_id"),
    ("SubmitRun", "/factory/runs", "POST", "releaseId", "release_id"),
    ("MoveAlias", "/factory/assets/sample/aliases/probe", "PUT", "releaseId", "release_id"),
    ("EvaluatePolicy", "/factory/policy-revisions/evaluate", "POST", "revision", "revision"),
]


@pytest.mark.parametrize(("operation", "path", "method", "member", "name"), BODY_IDS)
@pytest.mark.parametrize("whose", ["foreign", "sister"])
def test_an_id_in_a_body_is_judged_the_same(
    scene: Scene, operation: str, path: str, method: str, member: str, name: str, whose: str
) -> None:
    home, other = scene.home, getattr(scene, whose)
    if whose == "sister" and name in OF_THE_TENANT:
        return
    told = []
    for one in (other.ids[name], random_id(name)):
        body = BODIES[operation](home, home.ids) | {member: one}
        if member == "releaseId" and operation == "SubmitRun":
            body.pop("releaseAlias")
        if operation == "MoveAlias":
            body["version"] = 0
        answer = Api.as_(home.everybody).call(method, path, body, Idempotency_Key=str(uuid4()))
        told.append(normal(answer, one))
    assert told[0] == told[1]
    assert told[0][0] in (404, 422)


LISTS = [route for route in ROUTES if not route.params and "GET" in route.operations]
FILTERS = {
    "/factory/approvals": [("runId", "run_id")],
    "/factory/runs": [("requestedBy", "subject")],
    "/factory/waivers": [("templateId", "template_id")],
    "/factory/reservations": [("runId", "run_id")],
}


def test_no_list_shows_anything_of_others(scene: Scene) -> None:
    for other in (scene.foreign, scene.sister):
        secret = {v for k, v in other.ids.items() if k not in OF_THE_TENANT}
        secret |= {other.tenant} if other is scene.foreign else set()
        for route in LISTS:
            text = Api.as_(scene.home.everybody).get(f"{route.path}?limit=200").content.decode()
            shown = {one for one in secret if one in text}
            assert not shown, f"{route.path} shows {shown}"


@pytest.mark.parametrize("whose", ["foreign", "sister"])
def test_a_filter_by_somebody_elses_id_finds_nothing(scene: Scene, whose: str) -> None:
    other = getattr(scene, whose)
    for path, filters in FILTERS.items():
        for query, name in filters:
            answer = Api.as_(scene.home.everybody).get(f"{path}?{query}={other.ids[name]}")
            nothing = Api.as_(scene.home.everybody).get(f"{path}?{query}={uuid4()}")
            if answer.status_code == 400:
                assert nothing.status_code == 400, f"{path} has no filter {query}"
                continue
            assert answer.json()["items"] == nothing.json()["items"] == [], path


def test_a_cursor_is_good_in_its_own_scope_only(scene: Scene) -> None:
    tried = 0
    for route, other in product(LISTS, (scene.foreign, scene.sister)):
        told = Api.as_(other.everybody).get(f"{route.path}?limit=1").json()
        if told.get("next") is None:
            continue
        tried += 1
        path = f"{route.path}?limit=1&cursor={told['next']}"
        assert Api.as_(other.everybody).get(path).status_code == 200, path
        answer = Api.as_(scene.home.everybody).get(path)
        assert answer.status_code == 400, f"{route.path} takes a cursor of another scope"
        assert [fault["pointer"] for fault in answer.json()["errors"]] == ["/cursor"]
    assert tried >= 6


def test_a_cursor_of_usage_is_good_in_its_own_scope_only(scene: Scene) -> None:
    from django.core import signing

    from factory.kernel.hashing import digest

    api = Api.as_(scene.home.everybody)
    query = "from=2026-01-01&to=2030-01-01&groupBy=run"
    start, end = "2026-01-01T00:00:00+00:00", "2030-01-01T00:00:00+00:00"
    elsewhere = signing.dumps("x", salt=digest(["usage", "run", start, end]))
    assert api.get(f"/factory/usage?{query}&cursor={elsewhere}").status_code == 400


def browser(ctx: Context) -> Client:
    subject = ctx.actor.subject
    user = User.objects.filter(subject=subject).first() or User.objects.create_user(subject, subject=subject)
    client = Client(raise_request_exception=False)
    client.force_login(user)
    client.post("/admin/place/", {"place": f"{ctx.tenant_id}/{ctx.project_id or ''}"})
    return client


def test_no_page_of_the_console_opens_for_strangers(scene: Scene) -> None:
    """Every admin path with every row of the other tenant and of the sister."""
    from factory.console.site import site
    from factory.kernel.tenancy import reading

    client = browser(scene.home.everybody)
    tried, leaks = 0, []
    for other in (scene.foreign, scene.sister):
        for model in site._registry:
            name = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
            fields = {field.attname for field in model._meta.concrete_fields}
            with reading(other.system()):
                rows = model._default_manager.all()
                if other is scene.sister:
                    if "project_id" not in fields:
                        continue
                    rows = rows.filter(project_id=other.project)
                row = rows.order_by("-pk").first()
            if row is None or "tenant_id" not in fields:
                continue
            nobody = str(uuid4()) if isinstance(row.pk, UUID) else "999999999999"
            client.get("/admin/")  # shows, and so clears, what the pages before have left to be told
            theirs = client.get(f"{name}{row.pk}/change/")
            nothing = client.get(f"{name}{nobody}/change/")
            tried += 1
            if shape(theirs, str(row.pk)) != shape(nothing, nobody):
                leaks.append((name, other.tenant == scene.home.tenant, theirs.status_code))
    assert leaks == []
    assert tried > 25


def test_no_act_of_the_console_reaches_strangers(scene: Scene) -> None:
    """Asked by who has every role of the project, and by the administrator of the platform in its place.

    Whoever may do it finds nothing. Whoever may not is told that, in the same words for any id.
    """
    own = [(path, names) for path, names in console_routes() if "object_id" not in names]
    assert len(own) >= 15
    platform = context_of(
        subject_of(scene.home.tenant, "platform_admin"), scene.home.tenant, scene.home.project
    )
    kept = {id(other): kept_by(other) for other in (scene.foreign, scene.sister)}
    before = states_of_runs(scene)
    assert {path for path, names in own if "name" in names} == set(kept[id(scene.sister)])
    found: dict[tuple[str, str], set[int]] = {}
    for ctx in (scene.home.everybody, platform):
        client = browser(ctx)
        for (path, names), other, verb in product(own, (scene.foreign, scene.sister), ("get", "post")):
            if other is scene.sister and set(names) <= OF_THE_TENANT:
                continue  # a release is the tenant's: nobody's of another project
            real = other.ids | {"name": kept[id(other)].get(path, "")}
            theirs, nothing = (
                act_on(client, verb, path, ids) for ids in (real, {name: str(uuid4()) for name in names})
            )
            assert theirs == nothing, (path, verb)
            found.setdefault((path, verb), set()).add(theirs[0])
    for (path, verb), statuses in found.items():
        assert statuses & {404, 405}, f"{verb} {path}: nobody tried it who may do it"
        assert statuses <= {302, 403, 404, 405}, (path, verb, statuses)
    assert states_of_runs(scene) == before
    assert "WaitingForApproval" in before.values()


def states_of_runs(scene: Scene) -> dict[UUID, str]:
    """How the runs stand that no stranger moves."""
    return {run.id: str(run.state) for place in (scene.foreign, scene.sister) for run in runs_of(place)}


def kept_by(place: Place) -> dict[str, str]:
    """Pages that somebody's own session keeps for them, by their paths: the names by which they are found."""
    client, kept = browser(place.everybody), {}
    approval, run = place.ids["approval_id"], place.ids["run_id"]
    for path, sent in {
        "approvals/approvalrequest/": {"action": "approve_selected", "_selected_action": approval},
        "approvals/approvalrequest/ ": {"action": "reject_selected", "_selected_action": approval},
        "approvals/approvalrequest/decide-many/": {"decision": "reject", "seen": f"{approval} 99 x"},
        "runs/run/": {"action": "cancel_selected", "_selected_action": run},
        "runs/run/cancel/": {"reason": "none of them"},
    }.items():
        leads = client.post(f"/admin/{path.strip()}", {"index": "0"} | sent).headers["Location"]
        assert client.get(leads).status_code == 200, "It opens for whom it is kept"
        before, name = leads.rstrip("/").rsplit("/", 1)
        kept[f"{before}/<slug:name>/"] = name
    return kept


def act_on(client: Client, verb: str, path: str, ids: dict[str, str]) -> tuple[int, str, list[str]]:
    """How an act is answered: the status, where it leads, and what is told there."""
    url, named = path, re.findall(r"<\w+:(\w+)>", path)
    for name in named:
        url = re.sub(rf"<\w+:{name}>", ids[name], url)
    answer = getattr(client, verb)(url, ANY_FORM)
    leads, told = answer.headers.get("Location", ""), [str(one) for one in get_messages(answer.wsgi_request)]
    if told:
        client.get("/admin/")  # shows them, and so clears them
    for name in named:
        leads, told = leads.replace(ids[name], "*"), [one.replace(ids[name], "*") for one in told]
    return answer.status_code, leads, told


ANY_FORM = {
    "reason": "x",
    "decision": "approve",
    "version": 1,
    "proposal_hash": "x",
    "resolution": "give-up",
    "evidence": "x",
}


def shape(answer: Any, key: str) -> tuple[int, str]:
    text = answer.content.decode().replace(key, "*")
    return answer.status_code, answer.headers.get("Location", "") + re.sub(
        r'csrf[^>]*|nonce="[^"]*"|value="[^"]{64}"', "", text
    )


def test_nothing_of_it_left_a_trace_that_the_auditor_minds(scene: Scene) -> None:
    for place in (scene.home, scene.foreign):
        found = [one for one in violations(place.tenant) if one.code != "B5"]  # its leases run out meanwhile
        assert found == []
