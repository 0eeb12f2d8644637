"""Approvals and policy over HTTP, as callers see them."""

import time
from typing import Any
from uuid import uuid4

import jsonschema
import pytest
from drf_spectacular.generators import SchemaGenerator

from approvals.policy.document import platform_default
from tests.approvals.test_decisions import decide, give_role
from tests.approvals.test_policy import rule, with_rules
from tests.support.api import Api, problem
from tests.support.approvals import DIFF, supersede
from tests.support.evidence import audits, counts, violations
from tests.support.queries import within_budget
from tests.support.world import ALL, second_world

pytestmark = pytest.mark.slow

LIST = "/factory/approvals"
POLICIES = "/factory/policy-revisions"


def path_of(view) -> str:
    return f"{LIST}/{view.id}"


def answer_of(view, decision: str = "approve", **other: Any) -> dict[str, Any]:
    return {"decision": decision, "version": view.version, "proposalHash": view.proposal_hash, **other}


def send(who: Api, view, decision: str = "approve", **other: Any) -> Any:
    return who.post(f"{path_of(view)}/decision", answer_of(view, decision, **other))


@pytest.fixture
def reviewer(asker) -> Api:
    return Api.as_(asker.world.reviewer)


@pytest.mark.requirement("APR-03")
def test_decides_what_was_on_the_screen(asker, reviewer):
    view = asker.ask()
    shown = reviewer.get(path_of(view)).json()
    body = {"decision": "approve", "version": shown["version"], "proposalHash": shown["proposalHash"]}
    answer = reviewer.post(f"{path_of(view)}/decision", {**body, "reason": "fine"})
    assert answer.status_code == 200, answer.content
    told = answer.json()
    assert (told["state"], told["decision"], told["reason"]) == ("Approved", "approve", "fine")
    assert told["decidedBy"] == asker.world.reviewer.actor.subject
    assert told["use"] == "not-yet-used"
    assert told["validUntil"] is not None
    asker.take(view)
    used = reviewer.get(path_of(view)).json()
    assert used["use"] == "used"
    assert used["authorization"]["attemptId"] == str(asker.attempt_id)
    assert violations(asker.world.tenant) == []


@pytest.mark.requirement("APR-30")
def test_shows_what_is_decided_and_who_may(asker, reviewer):
    shown = reviewer.get(path_of(asker.ask())).json()
    assert (shown["proposal"], shown["proposalWithheld"]) == (DIFF, False)
    assert (shown["mayDecide"], shown["whyNot"]) == (True, "")
    people = {one["subject"].split("@")[0]: one for one in shown["whoMayDecide"]}
    may = {name for name, one in people.items() if one["mayDecide"]}
    assert may == {"reviewer", "reviewer2", "workspace-admin", "tenant-admin"}
    assert "Reviewer or WorkspaceAdmin" in people["observer"]["whyNot"]
    assert shown["whoMayDecide"][0]["mayDecide"], "who may decide comes first"


def test_tells_the_requester_why_not(asker):
    promoted = give_role(asker, asker.world.requester, "Requester", "Reviewer")
    shown = Api.as_(promoted).get(path_of(asker.ask())).json()
    assert shown["mayDecide"] is False
    assert "never decides on it" in shown["whyNot"]


def test_a_proposal_is_for_readers_of_payloads_and_for_who_decides(asker):
    view, home = asker.ask(), asker.world
    may = {"reviewer": True, "requester": True, "operator": True, "observer": False, "platform_admin": True}
    for name, shown in may.items():
        told = Api.as_(getattr(home, name)).get(path_of(view)).json()
        assert (told["proposal"] == DIFF) is shown, name
        assert told["proposalWithheld"] is not shown
    narrow = Api.as_(home.operator, scopes=ALL - {"factory.payloads.read"}).get(path_of(view)).json()
    assert narrow["proposal"] is None


@pytest.mark.requirement("APR-26", "API-15")
def test_lists_what_the_callers_roles_may_see(asker):
    home = asker.world
    mine = asker.ask()
    others = asker.again().ask(requested_by="somebody", requester_person="somebody")
    for name in ("reviewer", "workspace_admin", "operator", "observer", "platform_admin"):
        seen = ids(Api.as_(getattr(home, name)).get(LIST))
        assert seen == [str(others.id), str(mine.id)], name
    assert ids(Api.as_(home.requester).get(LIST)) == [str(mine.id)]
    assert Api.as_(home.requester).get(path_of(others)).status_code == 404


@pytest.mark.requirement("API-13")
def test_each_answer_needs_the_version_that_was_shown(asker, reviewer):
    states = {"approve": "Approved", "request_changes": "Stale", "reject": "Rejected"}
    for decision, state in states.items():
        view = asker.again().ask()
        blind = answer_of(view, decision, reason="as seen")
        del blind["version"]
        assert reviewer.post(f"{path_of(view)}/decision", blind).status_code == 400
        assert send(reviewer, view, decision, reason="as seen", version=view.version + 1).status_code == 409
        answer = send(reviewer, view, decision, reason="as seen")
        assert (answer.status_code, answer.json()["state"]) == (200, state)


def ids(answer) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [item["approvalId"] for item in answer.json()["items"]]


@pytest.mark.requirement("API-15")
def test_filters(asker, reviewer):
    first, second = asker.ask(), asker.again().ask(action_class="external")
    release = asker.ask_publication()
    decide(asker.world.reviewer, first, "reject")
    assert ids(reviewer.get(f"{LIST}?state=Pending")) == [str(release.id), str(second.id)]
    approved = decide(asker.world.reviewer, asker.again().ask(action_class="production"))
    assert ids(reviewer.get(f"{LIST}?state=Approved")) == [str(approved.id)]
    assert ids(reviewer.get(f"{LIST}?actionClass=external")) == [str(second.id)]
    assert ids(reviewer.get(f"{LIST}?runId={asker.run_id}")) == [
        str(each.id) for each in (approved, second, first)
    ]
    assert ids(reviewer.get(f"{LIST}?state=Rejected&actionClass=external")) == []
    for bad in ("state=pending", "actionClass=x", "runId=1", "mine=1", "tenantId=t", "state__in=Pending"):
        assert problem(reviewer.get(f"{LIST}?{bad}"))["status"] == 400, bad


def test_mine_is_what_waits_for_me(asker, reviewer):
    home = asker.world
    view = asker.ask()
    own = asker.again().ask(
        requested_by=home.reviewer.actor.subject, requester_person=home.reviewer.actor.person
    )
    release = asker.ask_publication()
    decided = decide(home.reviewer2, asker.again().ask())
    assert ids(reviewer.get(f"{LIST}?mine=true")) == [str(release.id), str(view.id)]
    assert ids(Api.as_(home.workspace_admin).get(f"{LIST}?mine=true")) == [str(own.id), str(view.id)]
    assert ids(Api.as_(home.observer).get(f"{LIST}?mine=true")) == []
    assert str(decided.id) in ids(reviewer.get(f"{LIST}?mine=false"))


def test_pages(asker, reviewer):
    views = [str(asker.again().ask().id) for _ in range(5)]
    first = reviewer.get(f"{LIST}?limit=3").json()
    rest = reviewer.get(f"{LIST}?limit=3&cursor={first['next']}").json()
    seen = [item["approvalId"] for item in first["items"] + rest["items"]]
    assert seen == views[::-1]
    assert rest["next"] is None


# ---------------------------------------------------------------- refusals


@pytest.mark.requirement("API-14")
def test_each_refusal_has_its_status_and_its_word(asker, reviewer, soon, settings):
    home = asker.world
    late = asker.ask()
    settings.FACTORY_APPROVALS_DEFAULT_EXPIRY_HOURS = 72
    steps = [asker.again() for _ in range(5)]
    view, decided, stale, moved, own = [step.ask() for step in steps]
    decide(home.reviewer2, decided)
    supersede(asker.house, approval_id=stale.id)
    time.sleep(soon)
    both = Api.as_(give_role(asker, home.requester, "Requester", "Reviewer"))
    table = [
        (Api().post(f"{path_of(view)}/decision", {}), 401, "unauthenticated"),
        (send(Api.as_(home.reviewer, scopes={"factory.approvals.read"}), view), 403, "insufficient-scope"),
        (send(Api.as_(home.observer), view), 403, "insufficient-role"),
        (send(both, own), 403, "separation-of-duties"),
        (send(reviewer, decided), 409, "already-decided"),
        (send(reviewer, stale), 410, "approval-over"),
        (send(reviewer, late), 410, "approval-expired"),
        (send(reviewer, late), 410, "approval-over"),
        (send(reviewer, moved, version=moved.version + 1), 409, "version-mismatch"),
        (send(reviewer, moved, proposalHash="sha256:0"), 409, "version-mismatch"),
        (send(reviewer, view, "request_changes"), 400, "reason-missing"),
        (reviewer.post(f"{LIST}/{uuid4()}/decision", answer_of(view)), 404, "not-found"),
    ]
    for response, status, word in table:
        told = problem(response)
        assert (told["status"], told["type"].rpartition("/")[2]) == (status, word)
        assert not {"subject", "stream", "evidence"} & set(told)
    assert table[4][0].json()["decision"]["decidedBy"] == home.reviewer2.actor.subject
    refused = [e for e in audits(asker.house, "DecideApproval") if e.outcome == "refused"]
    assert len(refused) == len(table) - 1, "all but the caller that nobody knows"
    assert asker.view(view.id).state == "Pending"
    assert violations(home.tenant) == []


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"decision": "Approve"}, "/decision"),
        ({"decision": True}, "/decision"),
        ({"decision": None}, "/decision"),
        ({"version": "1"}, "/version"),
        ({"version": 1.0}, "/version"),
        ({"version": None}, "/version"),
        ({"proposalHash": None}, "/proposalHash"),
        ({"reason": 7}, "/reason"),
        ({"reason": "x" * 2001}, "/reason"),
        ({"breakGlass": "yes"}, "/breakGlass"),
        ({"decidedBy": "ann"}, "/decidedBy"),
        ({"tenantId": "t"}, "/tenantId"),
    ],
)
@pytest.mark.requirement("APR-12", "APR-14")
def test_a_malformed_answer_decides_nothing(asker, reviewer, change, pointer):
    view = asker.ask()
    body = {**answer_of(view), **change}
    told = problem(reviewer.post(f"{path_of(view)}/decision", body))
    assert told["status"] == 400
    assert pointer in [fault["pointer"] for fault in told["errors"]]
    assert asker.view(view.id) == view


@pytest.mark.parametrize("missing", ["decision", "version", "proposalHash"])
def test_a_missing_member_is_never_a_yes(asker, reviewer, missing):
    view = asker.ask()
    body = {name: value for name, value in answer_of(view).items() if name != missing}
    assert problem(reviewer.post(f"{path_of(view)}/decision", body))["status"] == 400
    assert asker.view(view.id) == view


def test_following_links_decides_nothing(asker, reviewer):
    """Mail scanners and prefetchers send GET, HEAD and OPTIONS to every address that they see."""
    view = asker.ask()
    before = counts(asker.house)
    query = f"?decision=approve&version={view.version}&proposalHash={view.proposal_hash}"
    for path in (LIST, path_of(view), f"{path_of(view)}/decision", POLICIES, f"{POLICIES}/evaluate"):
        for method in ("GET", "HEAD", "OPTIONS"):
            for words in ("", query):
                assert reviewer.call(method, path + words).status_code in (200, 400, 404, 405)
        for method in ("PUT", "PATCH", "DELETE"):
            assert reviewer.call(method, path, {}).status_code == 405
    assert asker.view(view.id) == view
    assert counts(asker.house) == before


def test_another_tenant_sees_nothing(asker, tenant_id):
    view = asker.ask()
    before = counts(asker.house)
    stranger = second_world(tenant_id)
    for who in ("reviewer", "workspace_admin", "platform_admin", "requester"):
        there = Api.as_(getattr(stranger, who))
        assert ids(there.get(LIST)) == []
        assert problem(there.get(path_of(view)))["status"] == 404
        assert problem(send(there, view))["status"] == 404
        assert problem(there.get(f"{POLICIES}/r1"))["status"] == 404
        assert there.get(f"{LIST}?runId={asker.run_id}").json()["items"] == []
    assert counts(asker.house) == before


def test_a_token_without_a_project_reaches_no_projects_request(asker):
    view, wide = asker.ask(), Api.as_(asker.world.tenant_admin, project_id=None)
    assert ids(wide.get(LIST)) == []
    assert problem(send(wide, view))["status"] == 404


# ---------------------------------------------------------------- policy


def test_publishes_and_reads_revisions(asker):
    admin, observer = Api.as_(asker.world.workspace_admin), Api.as_(asker.world.observer)
    document = with_rules(rule("external", "deny"))
    answer = admin.post(POLICIES, {"document": document, "note": "no mail"}, Idempotency_Key="k1")
    assert answer.status_code == 201, answer.content
    assert answer["Location"] == f"{POLICIES}/r2"
    again = admin.post(POLICIES, {"document": document, "note": "no mail"}, Idempotency_Key="k1")
    assert (again.json(), again["Idempotent-Replayed"]) == (answer.json(), "true")
    assert observer.get(answer["Location"]).json() == answer.json()
    listed = observer.get(POLICIES).json()["items"]
    assert [one["revision"] for one in listed] == ["r2", "r1"]
    assert listed[1]["document"] == platform_default()
    assert problem(observer.get(f"{POLICIES}/r9"))["status"] == 404


@pytest.mark.requirement("POL-06")
def test_refuses_a_document_below_the_floor(asker):
    admin = Api.as_(asker.world.workspace_admin)
    told = problem(admin.post(POLICIES, {"document": with_rules(rule("production", "allow"))}))
    assert (told["status"], told["type"].rpartition("/")[2]) == (400, "policy-invalid")
    assert told["errors"] == [
        {
            "pointer": "/rules/0/effect",
            "detail": "production always needs a decision: the platform floor.",
        }
    ]
    for who in ("reviewer", "operator", "platform_admin"):
        other = Api.as_(getattr(asker.world, who))
        assert problem(other.post(POLICIES, {"document": platform_default()}))["status"] == 403


@pytest.mark.parametrize(
    ("usd", "effect"), [(100, "allow"), (100.01, "require-approval"), (None, "require-approval")]
)
def test_explains_an_amount_of_money(asker, usd, effect):
    told = Api.as_(asker.world.observer).post(
        f"{POLICIES}/evaluate", {"actionClass": "spend", "amountUsd": usd}
    )
    assert (told.json()["effect"], told.json()["thresholdUsd"], told.json()["atTheLimit"]) == (
        effect,
        100,
        "deny",
    )


def test_explains_no_amount_of_what_is_no_spending(asker):
    told = Api.as_(asker.world.observer).post(
        f"{POLICIES}/evaluate", {"actionClass": "external", "amountUsd": 1}
    )
    assert [error["pointer"] for error in problem(told)["errors"]] == ["/amountUsd"]


@pytest.mark.requirement("POL-04")
def test_explains(asker):
    observer = Api.as_(asker.world.observer)
    before = counts(asker.house)
    requester = asker.world.reviewer.actor.subject
    told = observer.post(
        f"{POLICIES}/evaluate",
        {"actionClass": "production", "environment": "staging", "requestedBy": requester},
    ).json()
    people = told.pop("whoMayDecide")
    assert told == {
        "revision": "r1",
        "actionClass": "production",
        "environment": "staging",
        "effect": "require-approval",
        "rule": "rule 3: production in *",
        "approverRoles": ["Reviewer", "WorkspaceAdmin"],
        "quorum": 1,
        "onExpiry": "fail",
        "expiryHours": 72.0,
        "validHours": 24.0,
        "inAdvance": "No waiver serves: production is never approved in advance.",
        "waivers": [],
        "thresholdUsd": None,
        "atTheLimit": None,
    }
    (own,) = [one for one in people if one["subject"] == requester]
    assert (own["mayDecide"], "never decides on it" in own["whyNot"]) == (False, True)
    free = observer.post(f"{POLICIES}/evaluate", {"actionClass": "read", "revision": "r1"}).json()
    assert (free["effect"], free["approverRoles"], free["whoMayDecide"]) == ("allow", [], [])
    assert problem(observer.post(f"{POLICIES}/evaluate", {"actionClass": "dance"}))["status"] == 400
    assert problem(observer.post(f"{POLICIES}/evaluate", {}))["status"] == 400
    assert counts(asker.house) == before


# ---------------------------------------------------------------- schema and cost


def test_answers_are_what_the_schema_says(asker, reviewer):
    document = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    view = asker.ask()
    admin = Api.as_(asker.world.workspace_admin)
    one, answer = "/factory/approvals/{approval_id}", "/factory/approvals/{approval_id}/decision"
    answers = [
        (reviewer.get(LIST), LIST, "get", "200"),
        (reviewer.get(path_of(view)), one, "get", "200"),
        (send(reviewer, view), answer, "post", "200"),
        (reviewer.get(path_of(view)), one, "get", "200"),
        (admin.post(POLICIES, {"document": platform_default()}), POLICIES, "post", "201"),
        (admin.get(POLICIES), POLICIES, "get", "200"),
        (admin.get(f"{POLICIES}/r1"), f"{POLICIES}/{{revision}}", "get", "200"),
        (
            admin.post(f"{POLICIES}/evaluate", {"actionClass": "external"}),
            f"{POLICIES}/evaluate",
            "post",
            "200",
        ),
    ]
    for response, path, method, status in answers:
        assert str(response.status_code) == status, response.content
        content = document["paths"][path][method]["responses"][status]["content"]
        whole = {**content["application/json"]["schema"], "components": document["components"]}
        jsonschema.Draft202012Validator(
            whole, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
        ).validate(response.json())


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("GET /approvals", LIST),
        ("GET /approvals?mine=true", f"{LIST}?mine=true"),
        ("GET /policy-revisions", POLICIES),
    ],
)
def test_lists_stay_within_their_budgets(asker, reviewer, name, path):
    for _ in range(8):
        decide(asker.world.reviewer2, asker.again().ask())
        asker.again().ask()
    reviewer.get(path)
    with within_budget(name):
        assert reviewer.get(path).status_code == 200


def test_a_request_and_its_decision_stay_within_their_budgets(asker, reviewer):
    view = asker.ask()
    reviewer.get(path_of(view))
    with within_budget("GET /approvals/{id}"):
        assert reviewer.get(path_of(view)).status_code == 200
    with within_budget("POST /approvals/{id}/decision"):
        assert send(reviewer, view).status_code == 200
