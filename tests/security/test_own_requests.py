"""Nobody decides on what they asked for, whatever else they are: every path is a row of one table.

A new way to decide is one more entry in PATHS, and a new reason to answer for a request one in PEOPLE; it
is then tried for everybody here.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command

from approvals.selectors import ApprovalView
from approvals.selectors import approval as approval_now
from factory.kernel.context import Context
from factory.kernel.tenancy import reading
from projects.commands import add_member, register_service_account
from projects.commands.inputs import NewMember
from runs.commands import start_run
from runs.rest.submissions import submit
from tests.security.test_tenant_matrix import browser
from tests.support.api import Api, problem, token_of
from tests.support.delegations import lend
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
    breaks_glass: bool = True
    """Whether the role for it is theirs, so that nothing but the separation of duties stops them."""
    decides: bool = True
    """Whether a role to decide is theirs, which no machine can hold."""

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
    judge = machine(house, me, "judge", "Requester", "Operator")
    return Case(house, judge, asked_by(house, me), breaks_glass=False, decides=False)


def among_my_machines(house: House) -> Case:
    me = everybody(house, "keeper")
    asked = asked_by(house, machine(house, me, "asks", "Requester"))
    return Case(house, machine(house, me, "decides", "Operator"), asked, breaks_glass=False, decides=False)


def delegate_of_who_asked(house: House) -> Case:
    """Somebody with no role of their own to decide by: it was lent by who asked."""
    me, w = everybody(house, "lender"), house.world
    lend(me, w.observer)
    borrower = context_of(w.observer.actor.subject, w.tenant, w.project)
    return Case(house, borrower, asked_by(house, me), breaks_glass=False)


def who_asked_with_a_lent_role(house: House) -> Case:
    """The lent role is another's, and the request is still one's own."""
    w = house.world
    asked = asked_by(house, w.requester)
    lend(w.reviewer2, w.requester)
    both = context_of(w.requester.actor.subject, w.tenant, w.project)
    return Case(house, both, asked, breaks_glass=False)


def delegate_of_the_owner(house: House) -> Case:
    """A service account asked; its owner has lent the role."""
    case = of_my_machine(house)
    w = house.world
    lend(case.who, w.observer)
    borrower = context_of(w.observer.actor.subject, w.tenant, w.project)
    return replace(case, who=borrower, breaks_glass=False)


PEOPLE: dict[str, Callable[[House], Case]] = {
    "who asked, with every role": own,
    "who owns the service account that asked": of_my_machine,
    "the service account of who asked": by_my_machine,
    "one of two service accounts of one owner": among_my_machines,
    "a delegate of who asked": delegate_of_who_asked,
    "a delegate of the owner of the service account that asked": delegate_of_the_owner,
    "who asked, with a lent role": who_asked_with_a_lent_role,
}


def by_api(decision: str, extra: Any = None, **claims: Any) -> Callable[[Case], int]:
    def send(case: Case) -> int:
        body = {"decision": decision, **seen_of(case), "reason": "mine", **(extra or {})}
        api = Api(token_of(case.who, **{"scopes": ALL, **claims}))
        answer = api.post(f"/factory/approvals/{case.approval_id}/decision", body)
        problem(answer)
        return int(answer.status_code)

    return send


def seen_of(case: Case) -> dict[str, Any]:
    view = case.view()
    return {"version": view.version, "proposalHash": view.proposal_hash}


def by_bulk(decision: str) -> Callable[[Case], int]:
    def send(case: Case) -> int:
        item = {"approvalId": str(case.approval_id), "decision": decision, "reason": "mine"}
        answer = Api.as_(case.who).post("/factory/approvals/decisions", {"items": [item | seen_of(case)]})
        assert answer.status_code == 207, answer.content
        return int(answer.json()["items"][0]["status"])

    return send


def by_button(decision: str, page: str = "decide") -> Callable[[Case], int]:
    def send(case: Case) -> int:
        view = case.view()
        form = {"decision": decision, "version": view.version, "proposal_hash": view.proposal_hash}
        path = f"/admin/approvals/approvalrequest/{case.approval_id}/{page}/"
        return int(browser(case.who).post(path, form | {"reason": "mine"}).status_code)

    return send


def by_list(decision: str) -> Callable[[Case], int]:
    """From the page that follows a choice of rows."""

    def send(case: Case) -> int:
        view = case.view()
        form = {"decision": decision, "seen": [f"{view.id} {view.version} {view.proposal_hash}"]}
        page = browser(case.who).post("/admin/approvals/approvalrequest/decide-many/", form, follow=True)
        [fate] = page.context["fates"].each
        return int(fate.status or 200)

    return send


def by_terminal(case: Case) -> int:
    view, out = case.view(), StringIO()
    seen = ["--seen-version", str(view.version), "--proposal-hash", view.proposal_hash]
    where = ["--tenant", case.house.tenant, "--project", "main", "--as", case.who.actor.subject]
    try:
        call_command("approve", str(view.id), *where, *seen, "--decision", "approve", stdout=out)
    except CommandError as refused:
        return int(getattr(refused.__cause__, "http_status", 500))
    return 200


ANSWERS = ("approve", "reject", "request_changes")
GLASS = {"breakGlass": True}
PATHS: dict[str, Callable[[Case], int]] = {
    **{f"API, {word}": by_api(word) for word in ANSWERS},
    "API, a token narrowed to Reviewer": by_api("approve", roles=["Reviewer"]),
    "API, several at once": by_bulk("approve"),
    **{f"API, break-glass, {word}": by_api(word, GLASS) for word in ANSWERS},
    **{f"console, {word}": by_button(word) for word in ANSWERS},
    "console, several at once": by_list("approve"),
    **{f"console, break-glass, {word}": by_button(word, "break-glass") for word in ANSWERS},
    "terminal": by_terminal,
}
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
        without_role = not case.decides or ("break-glass" in path and not case.breaks_glass)
        code = "insufficient-role" if without_role else "separation-of-duties"
        refused = len(case.refusals())
        assert walk(case) == 403, path
        assert len(case.refusals()) == refused + 1, f"{path}: one audit row for one refusal"
        last = case.refusals()[-1]
        assert (last.subject, last.detail["code"]) == (f"approval:{case.approval_id}", code), path
        assert case.view() == seen, path
    assert counts(case.house.system)[:2] == before, "no transition and no event came of it"
    assert case.house.state(seen.run_id) == "WaitingForApproval"
    case.house.decide(case.approval_id)
    assert case.view().state == "Approved", "a second person can"
    assert violations(tenant_id) == []


@pytest.mark.requirement("APR-21")
def test_no_action_on_the_list_decides(tenant_id: str) -> None:
    """An action asks first; what a form claims to be another changes nothing and opens no other way."""
    case = own(House(tenant_id))
    before, page = counts(case.house.system), browser(case.who)
    for action in ("approve", "approve_selected", "reject_selected", "decide", "delete_selected", ""):
        form = {"action": action, "_selected_action": [str(case.approval_id)], "index": 0, "post": "yes"}
        answer = page.post("/admin/approvals/approvalrequest/", form)
        assert answer.status_code in (200, 302, 403, 405), action
    assert counts(case.house.system) == before
    assert case.view().state == "Pending"
