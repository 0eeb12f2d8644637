"""Nobody decides on what they asked for, whatever else they are: every path is a row of one table.

A new way to decide (break-glass, a delegate, a bulk action) is one more entry in PATHS or in PEOPLE; it is
then tried for everybody here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest

from approvals.rest.serializers import DecisionBody
from approvals.selectors import ApprovalView
from approvals.selectors import approval as approval_now
from factory.context import Context
from factory.tenancy import reading
from projects.commands import add_member, register_service_account
from projects.inputs import NewMember
from runs.commands import start_run, submit
from tests.security.test_tenant_matrix import browser
from tests.support.api import Api, problem, token_of
from tests.support.evidence import audits, counts, violations
from tests.support.running import House
from tests.support.world import ALL, context_of, subject_of

ROLES = ("Requester", "Reviewer", "Operator", "WorkspaceAdmin")


@dataclass(frozen=True)
class Case:
    """Somebody before a request that they answer for."""

    house: House
    who: Context
    approval_id: UUID

    def view(self) -> ApprovalView:
        with reading(self.house.system):
            return approval_now(self.approval_id)

    def refusals(self) -> list[Any]:
        return [a for a in audits(self.house.system, "DecideApproval") if a.outcome == "refused"]


def everybody(house: House, name: str) -> Context:
    """A person with every role that there is, in the project and over the whole tenant."""
    subject = subject_of(house.tenant, name)
    project = house.world.project
    add_member(house.system, project_id=project, member=NewMember(subject, ROLES, ("payloads",)))
    wide = NewMember(subject, ("PlatformAdmin", "WorkspaceAdmin"))
    add_member(house.system, project_id=None, member=wide)
    return context_of(subject, house.tenant, project)


def machine(house: House, owner: Context, slug: str, *roles: str) -> Context:
    subject = register_service_account(
        house.system, project_id=house.world.project, slug=slug, owner=owner.actor.subject, roles=roles
    )
    return context_of(subject, house.tenant, house.world.project)


def asked_by(house: House, requester: Context) -> UUID:
    """A request that waits, of a run of theirs."""
    body, _ = submit(requester, payload=house.payload("gated"), key=str(uuid4()))
    start_run(house.system, run_id=UUID(body["runId"]))
    worker = house.hand(f"w-{uuid4().hex[:6]}")
    asked = worker.ask(worker.take()).approval_id
    assert asked is not None
    return asked


def own(house: House) -> Case:
    me = everybody(house, "everybody")
    return Case(house, me, asked_by(house, me))


def of_my_machine(house: House) -> Case:
    me = everybody(house, "owner")
    return Case(house, me, asked_by(house, machine(house, me, "mine", "Requester")))


def by_my_machine(house: House) -> Case:
    me = everybody(house, "principal")
    return Case(house, machine(house, me, "judge", "Reviewer", "WorkspaceAdmin"), asked_by(house, me))


def among_my_machines(house: House) -> Case:
    me = everybody(house, "keeper")
    asked = asked_by(house, machine(house, me, "asks", "Requester"))
    return Case(house, machine(house, me, "decides", "Reviewer"), asked)


PEOPLE: dict[str, Callable[[House], Case]] = {
    "who asked, with every role": own,
    "who owns the service account that asked": of_my_machine,
    "the service account of who asked": by_my_machine,
    "one of two service accounts of one owner": among_my_machines,
}


def by_api(decision: str, extra: Any = None, **claims: Any) -> Callable[[Case], int]:
    def send(case: Case) -> int:
        view = case.view()
        body = {"decision": decision, "version": view.version, "proposalHash": view.proposal_hash}
        body |= extra or {}
        api = Api(token_of(case.who, **{"scopes": ALL, **claims}))
        answer = api.post(f"/factory/approvals/{case.approval_id}/decision", body | {"reason": "mine"})
        assert problem(answer)["type"].endswith("/separation-of-duties"), answer.content
        return int(answer.status_code)

    return send


def by_button(decision: str) -> Callable[[Case], int]:
    def send(case: Case) -> int:
        view = case.view()
        form = {"decision": decision, "version": view.version, "proposal_hash": view.proposal_hash}
        path = f"/admin/approvals/approvalrequest/{case.approval_id}/decide/"
        return int(browser(case.who).post(path, form | {"reason": "mine"}).status_code)

    return send


PATHS: dict[str, Callable[[Case], int]] = {
    "API, approve": by_api("approve"),
    "API, reject": by_api("reject"),
    "API, request changes": by_api("request_changes"),
    "API, a token narrowed to Reviewer": by_api("approve", roles=["Reviewer"]),
    "console, approve": by_button("approve"),
    "console, reject": by_button("reject"),
    "console, request changes": by_button("request_changes"),
}
if "breakGlass" in DecisionBody().fields:
    GLASS = {"breakGlass": True}
    PATHS |= {f"API, break-glass, {word}": by_api(word, GLASS) for word in ("approve", "reject")}
OF_PEOPLE = ("console",)
"""Paths that no service account can walk: it has no session."""


@pytest.mark.requirement("APR-21")
@pytest.mark.parametrize("name", PEOPLE)
def test_who_answers_for_a_request_is_refused_on_every_path(tenant_id: str, name: str) -> None:
    case = PEOPLE[name](House(tenant_id))
    before, seen = counts(case.house.system)[:2], case.view()
    for path, walk in PATHS.items():
        if case.who.actor.kind == "service" and path.startswith(OF_PEOPLE):
            continue
        refused = len(case.refusals())
        assert walk(case) == 403, path
        assert len(case.refusals()) == refused + 1, f"{path}: one audit row for one refusal"
        assert case.refusals()[-1].subject == f"approval:{case.approval_id}", path
        assert case.view() == seen, path
    assert counts(case.house.system)[:2] == before, "no transition and no event came of it"
    assert case.house.state(seen.run_id) == "WaitingForApproval"
    case.house.decide(case.approval_id)
    assert case.view().state == "Approved", "a second person can"
    assert violations(tenant_id) == []


@pytest.mark.requirement("APR-21")
def test_no_action_on_the_list_decides(tenant_id: str) -> None:
    """There is none; what a form claims to be one changes nothing and opens no other way."""
    case = own(House(tenant_id))
    before, page = counts(case.house.system), browser(case.who)
    for action in ("approve", "approve_selected", "decide", "delete_selected", ""):
        form = {"action": action, "_selected_action": [str(case.approval_id)], "index": 0, "post": "yes"}
        answer = page.post("/admin/approvals/approvalrequest/", form)
        assert answer.status_code in (200, 302, 403, 405), action
    assert counts(case.house.system) == before
    assert case.view().state == "Pending"
