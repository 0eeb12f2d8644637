"""Attacks on a gate, over HTTP: whoever tries what, nothing is done that a second person has not approved.

Each attack is made by somebody with more rights than they should need, and ends with a worker that asks for
the right to act on it, is refused, and acts all the same.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest

from approvals.models import Authorization
from approvals.selectors import Right
from factory.kernel.context import Context
from factory.kernel.tenancy import reading
from runs.commands import start_run
from runs.rest.submissions import submit
from tests.faults.test_what_was_signed import Worker, approved, refused
from tests.security.test_own_requests import PATHS, Case, everybody, machine
from tests.support.acts import ruled
from tests.support.api import Api
from tests.support.approvals import let_expire
from tests.support.evidence import violations
from tests.support.proposals import DIFF, OTHER_DIFF
from tests.support.receipts import effect
from tests.support.running import House

SHUT = {"not-authorized", "not-found", "approval-expired", "approval-lapsed", "run-not-working"}
SECOND_TOKEN = ("API, approve", "API, a token narrowed to Reviewer")
ADMIN = ("console, approve", "API, break-glass, approve", "console, break-glass, approve", "terminal")
BULK = ("API, several at once", "console, several at once")


@dataclass
class Tried:
    """The run, what its worker holds, and with which approvals for which proposals it wants to act."""

    run_id: UUID
    work: dict[str, Any]
    acts: list[tuple[UUID, Any]]


def asked(house: House, worker: Worker, requester: Context | None = None) -> tuple[UUID, Any, UUID]:
    """A run, perhaps of somebody else's, whose worker holds its lease and waits for an answer."""
    body, _ = submit(requester or house.world.requester, payload=house.payload("gated"), key=str(uuid4()))
    start_run(house.system, run_id=UUID(body["runId"]))
    work = worker.take()
    return UUID(body["runId"]), work, worker.ask(work, DIFF)


def shown(api: Api, approval_id: UUID) -> dict[str, Any]:
    told = api.get(f"/factory/approvals/{approval_id}").json()
    return {name: told[name] for name in ("version", "proposalHash")}


def answered(api: Api, approval_id: UUID, form: dict[str, Any], decision: str = "approve") -> tuple[int, str]:
    answer = api.post(f"/factory/approvals/{approval_id}/decision", {"decision": decision, **form})
    return answer.status_code, answer.json().get("type", "").rpartition("/")[2]


def swap_after_display(house: House, worker: Worker) -> Tried:
    run_id, work, first = asked(house, worker)
    reviewer = Api.as_(house.world.reviewer)
    form = shown(reviewer, first)
    second = worker.ask(work, OTHER_DIFF)
    assert answered(reviewer, first, form) == (410, "approval-over")
    assert answered(reviewer, second, form) == (409, "version-mismatch")
    return Tried(run_id, work, [(first, DIFF), (first, OTHER_DIFF), (second, OTHER_DIFF)])


def swap_after_the_decision(house: House, worker: Worker) -> Tried:
    run_id, work, approval_id = approved(house, worker)
    return Tried(run_id, work, [(approval_id, OTHER_DIFF)])


def replay_in_another_run(house: House, worker: Worker) -> Tried:
    """The same proposal to the byte, in a run whose own request waits."""
    _, _, elsewhere = approved(house, worker)
    run_id, work, own = asked(house, worker)
    return Tried(run_id, work, [(own, DIFF), (elsewhere, DIFF)])


def replay_from_another_tenant(house: House, worker: Worker) -> Tried:
    other = House(f"{house.tenant}-b")
    _, _, elsewhere = approved(other, Worker(worker.base, other, "elsewhere"))
    run_id, work, _ = asked(house, worker)
    return Tried(run_id, work, [(elsewhere, DIFF)])


def by_who_asked(*paths: str) -> Callable[[House, Worker], Tried]:
    """They hold every role that there is, in the project and over the tenant."""

    def attack(house: House, worker: Worker) -> Tried:
        me = everybody(house, "everybody")
        run_id, work, approval_id = asked(house, worker, me)
        for path in paths:
            assert PATHS[path](Case(house, me, approval_id)) == 403, path
        return Tried(run_id, work, [(approval_id, DIFF)])

    return attack


def by_their_machine(house: House, worker: Worker) -> Tried:
    me = everybody(house, "everybody")
    run_id, work, approval_id = asked(house, worker, me)
    judge = machine(house, me, "judge", "Requester", "Operator")
    for path in (*SECOND_TOKEN, BULK[0]):
        assert PATHS[path](Case(house, judge, approval_id)) == 403, path
    return Tried(run_id, work, [(approval_id, DIFF)])


def expired(house: House, worker: Worker) -> Tried:
    run_id, work, approval_id = asked(house, worker)
    reviewer = Api.as_(house.world.reviewer)
    form = shown(reviewer, approval_id)
    let_expire(approval_id)
    assert answered(reviewer, approval_id, form) == (410, "approval-expired")
    assert answered(reviewer, approval_id, form) == (410, "approval-over")
    return Tried(run_id, work, [(approval_id, DIFF)])


def lapsed(house: House, worker: Worker) -> Tried:
    run_id, work, approval_id = approved(house, worker)
    house._owner(
        "UPDATE approvals_approvalrequest SET valid_until = clock_timestamp() WHERE id = %s",
        [approval_id],
        unpinned=True,
    )
    return Tried(run_id, work, [(approval_id, DIFF)])


def policy_loosened(house: House, worker: Worker) -> Tried:
    """Two admins have to agree on this run; that one reviewer is enough later on helps nobody."""
    ruled(house, roles=["WorkspaceAdmin"], quorum=2)
    run_id, work, approval_id = asked(house, worker)
    ruled(house, roles=["Reviewer", "WorkspaceAdmin"])
    for who, code in (("reviewer", (403, "insufficient-role")), ("workspace_admin", (200, ""))):
        api = Api.as_(getattr(house.world, who))
        assert answered(api, approval_id, shown(api, approval_id)) == code
    work["snapshot"]["policyRevision"] = "r3"
    assert refused(worker.asking(work, DIFF)) == (409, "pins-mismatch")
    return Tried(run_id, work, [(approval_id, DIFF)])


ATTACKS: dict[str, Callable[[House, Worker], Tried]] = {
    "swapped after display": swap_after_display,
    "swapped after the decision": swap_after_the_decision,
    "replayed in another run": replay_in_another_run,
    "replayed from another tenant": replay_from_another_tenant,
    "own, by a second token": by_who_asked(*SECOND_TOKEN),
    "own, by one's service account": by_their_machine,
    "own, as an admin": by_who_asked(*ADMIN),
    "own, in bulk": by_who_asked(*BULK),
    "expired": expired,
    "lapsed": lapsed,
    "policy loosened": policy_loosened,
}


def executions(house: House) -> list[Authorization]:
    with reading(house.system):
        return list(Authorization.objects.all())


@pytest.mark.requirement("APR-09")
@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_is_done_that_was_not_approved(house: House, base: str, name: str) -> None:
    worker = Worker(base, house)
    tried = ATTACKS[name](house, worker)
    for approval_id, proposal in tried.acts:
        _, code = refused(worker.authorize(tried.work, approval_id, proposal))
        assert code in SHUT, code
    assert executions(house) == []
    approval_id, proposal = tried.acts[-1]
    answer = worker.report(tried.work, effect(approval_id, proposal))
    assert answer.status_code in (200, 409), answer.text
    run = house.row(tried.run_id)
    assert (run.state, run.failure_class) == ("Failed", "policy-denied"), "seen, and the end of the run"


WEAKER = {
    "swapped after the decision": "_require_covered",
    "replayed in another run": "_require_covered",
    "lapsed": "_require_valid",
}


@pytest.mark.parametrize("name", WEAKER)
def test_with_a_weaker_gate_it_is_done_and_the_auditor_finds_it(
    tenant_id: str, base: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    house = House(tenant_id)
    worker = Worker(base, house)
    tried = ATTACKS[name](house, worker)
    monkeypatch.setattr(sys.modules["approvals.operations.using"], WEAKER[name], lambda *_: None)
    assert worker.authorize(tried.work, *tried.acts[-1]).status_code == 200
    assert len(executions(house)) == 1
    assert "D3" in {found.code for found in violations(tenant_id)}


def test_without_the_separation_of_duties_the_table_still_refuses(
    house: House, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule is taken away; the CHECK is a second one, and nothing is decided."""
    me = everybody(house, "everybody")
    run_id, _, approval_id = asked(house, Worker(base, house), me)

    def anybody(ctx: Context, gate: Any, *, break_glass: bool = False) -> Right:
        return Right(ctx.actor.subject, ctx.actor.person, "Reviewer", break_glass=break_glass)

    monkeypatch.setattr(sys.modules["approvals.operations.deciding"], "right_to_decide", anybody)
    api = Api.as_(me)
    form = shown(api, approval_id) | {"reason": "mine", "decision": "approve"}
    for glass in (False, True):
        answer = api.post(f"/factory/approvals/{approval_id}/decision", form | {"breakGlass": glass})
        assert answer.status_code == 500
    assert house.approvals(run_id)[0].state == "Pending"
    assert executions(house) == []
