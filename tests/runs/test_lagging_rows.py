"""Tables by themselves may come from an older backup than the journal: their rows follow it again."""

from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.core.management import call_command

from approvals.commands import decide_approval, revoke_waiver
from approvals.models import ApprovalRequest
from approvals.reconcilers import ApprovalExpiryReconciler
from factory.evidence.invariants import journaled_models
from factory.evidence.journal_replay import STAGES, repairs_of
from factory.kernel.tenancy import reading
from factory.messaging.webhooks.commands import create_webhook, disable_webhook
from factory.messaging.webhooks.signing import new_secret
from projects.commands import (
    change_member,
    kill_project,
    remove_member,
    resume_project,
    revoke_delegation,
    revoke_service_account,
    suspend_project,
)
from projects.models import ServiceAccount
from runs.commands import cancel_run, resolve_step, retire_run_template
from runs.reconcilers import KillSwitchReconciler
from runs.states import LEASE_TERMINAL
from tests.kernel.damage import admin_url
from tests.support.approvals import let_expire
from tests.support.backups import Rows, lose_events, put_back, rows_now
from tests.support.delegations import lend
from tests.support.evidence import violations
from tests.support.proposals import OTHER_DIFF
from tests.support.receipts import costing, effect, thinking
from tests.support.running import House
from tests.support.waivers import ask_waiver, template
from tests.support.world import context_of
from usage.commands import change_recurrence, settle_hold
from usage.models import Budget, Reservation

pytestmark = pytest.mark.slow

RUN = "runs_run", "runs_step", "runs_attempt", "runs_lease"
ROW_ALONE = {
    "approvals_approvalrequest": {"nobody_eligible"},
    "runs_attempt": {"checkpoint", "output", "reason"},
    "runs_lease": {"expires_at"},
    "runs_run": {"frozen_at"},
    "runs_step": {"reason"},
    "usage_reservation": {"dispatched_at", "hold_ended_reason", "hold_ended_evidence"},
    "usage_usagerecord": {"settled_reason", "settled_evidence"},
}
"""What no transition writes, or only a worker or a person knew: checkpoints, words, and renewals."""


@pytest.fixture(autouse=True)
def folder(own_database: str, tmp_path: Path, settings: Any) -> None:
    settings.FACTORY_ANCHORS_DIR = str(tmp_path / "anchors")
    settings.FACTORY_ANCHOR_KEY_FILE = str(tmp_path / "key.pem")


def test_every_table_whose_states_are_journaled_is_brought_up() -> None:
    house = [model for model in journaled_models() if not model.__module__.startswith("tests")]
    moving = [m for m in house if any(edge.source not in ("", edge.target) for edge in m.lifecycle.edges)]
    declared = {repair.model for stage in STAGES for repair in repairs_of(stage)}
    assert len(moving) > 10
    assert [model.__name__ for model in moving if model not in declared] == []


def recover() -> str:
    out = StringIO()
    with suppress(SystemExit):
        call_command("recover", "--force", stdout=out)
    return out.getvalue()


def differences(found: Rows, kept: Rows, *, lost: bool, by_hand: str = "") -> list[str]:
    """What is not as it was, nor left `by_hand`. With `lost`, nothing holds any more what was reported."""
    told = []
    for table, rows in kept.items():
        for key, was in rows.items():
            if key in by_hand:
                continue
            now = found[table][key]
            for name, value in was.items():
                of_a_worker = name == "output" and "approvalId" not in str(value)
                passed = name in ROW_ALONE.get(table, ()) or (lost and of_a_worker)
                if not passed and not same(name, now[name], value):
                    told.append(f"{table}.{name} of {was['state']}: {now[name]!r} for {value!r}")
    return sorted(set(told))


def same(name: str, found: Any, kept: Any) -> bool:
    """Times to a few seconds; a version may be higher, and is never one that somebody has seen before."""
    if name == "version":
        return bool(found >= kept)
    if name.endswith(("_at", "_since", "_until")) and found and kept:
        return abs(datetime.fromisoformat(found) - datetime.fromisoformat(kept)) < timedelta(seconds=5)
    return bool(found == kept)


class Story:
    """Something of everything, in three chapters; the rows of one know nothing of the next."""

    def __init__(self, house: House) -> None:
        self.house, self.hand = house, house.hand(slots=20)
        self.works: dict[str, Any] = {}
        self.asked: dict[str, UUID] = {}
        self.runs: dict[str, UUID] = {}

    def begin(self) -> None:
        """Everything is asked, and nothing is answered."""
        house, w = self.house, self.house.world
        kinds = ["single", "stubborn", "branches", "asked", *["gated"] * 8, "narrow", "narrow", "single"]
        names = ["plain", "failed", "retried", "person", "used", "no", "changes", "other", "late", "stopped",
                 "doubt", "lent", "two", "glass", "waiting"]  # fmt: skip
        self.runs = {name: house.run(kind) for name, kind in zip(names, kinds, strict=True)}
        by_run = {run: name for name, run in self.runs.items()}
        self.works = {by_run[work.run_id]: work for work in self.hand.poll()}
        for name, work in self.works.items():
            self.hand.acquire(work)
            if kinds[names.index(name)] == "gated" or kinds[names.index(name)] == "narrow":
                self.asked[name] = self.hand.ask(work, park=name in ("used", "no", "two")).approval_id
        [view] = house.pending(self.runs["person"])
        self.asked["person"] = view.id
        let_expire(self.asked["late"])
        self.loan = lend(w.reviewer, w.operator)
        self.account = self._account()
        self.kind = template(house)
        self.retired = template(house, "single")
        one, other = w.environments.values()
        places = [one], [other], [one, other]
        self.waivers = [ask_waiver(house, self.kind, environment_ids=ids) for ids in places]
        made = create_webhook(
            w.tenant_admin, url="https://hooks.example.test/x", topics=(), consumer="", description="",
            secret=new_secret(),
        )  # fmt: skip
        self.hook = UUID(made)

    def _account(self) -> UUID:
        with reading(self.house.system):
            return UUID(str(ServiceAccount.objects.get().id))

    def answer(self) -> None:
        """People answer; workers end."""
        house, w, hand = self.house, self.house.world, self.hand
        for name in ("person", "used", "doubt"):
            house.decide(self.asked[name])
        house.decide(self.asked["no"], "reject", reason="not this way")
        house.decide(self.asked["changes"], "request_changes", reason="smaller")
        hand.ask(self.works["other"], OTHER_DIFF)
        ApprovalExpiryReconciler().run_once(house.tenant)
        cancel_run(w.requester, run_id=self.runs["stopped"], reason="not wanted")
        house.decide(self.asked["lent"], by=context_of(w.operator.actor.subject, w.tenant, w.project))
        house.decide(self.asked["two"], by=w.workspace_admin)
        self._break_glass()
        hand.report(self.works["plain"], output={"n": 1}, receipts=[costing("1"), thinking(), thinking()])
        hand.fail(self.works["failed"], receipts=[thinking()])
        hand.fail(self.works["retried"])
        hand.authorize(self.works["doubt"], self.asked["doubt"])
        hand.report(self.works["doubt"], "Uncertain", "uncertain", reason="the line was cut")
        for asked in self.waivers[:2]:
            house.decide(asked["approval"])
        suspend_project(w.workspace_admin, project_id=w.project, reason="a pause")

    def _break_glass(self) -> None:
        with reading(self.house.system):
            row = ApprovalRequest.objects.get(pk=self.asked["glass"])
        decide_approval(
            self.house.world.platform_admin, approval_id=row.id, decision="approve", version=row.version,
            proposal_hash=row.proposal_hash, reason="it burns", break_glass=True,
        )  # fmt: skip

    def end(self) -> None:
        """What was answered is used, settled and withdrawn, and nothing is left open."""
        house, w, hand = self.house, self.house.world, self.hand
        resume_project(w.workspace_admin, project_id=w.project, reason="go on")
        house.make_due(self.runs["retried"])
        house.decide(self.asked["two"], by=w.tenant_admin)
        self._settle_money()
        while works := hand.poll():
            for work in works:
                self._finish(work)
        step = house.steps(self.runs["doubt"])["publish"]
        resolve_step(
            w.operator, run_id=self.runs["doubt"], step_id=step.id, resolution="effect-happened",
            evidence="it is there", version=step.version,
        )  # fmt: skip
        for name in ("changes", "other", "late", "stopped", "lent", "glass", "waiting"):
            hand.report(self.works[name], "Failed", "permanent", reason="enough")
        revoke_delegation(w.reviewer, delegation_id=self.loan)
        revoke_service_account(w.workspace_admin, account_id=self.account, reason="no longer needed")
        change_member(w.workspace_admin, membership_id=w.memberships["reviewer2"], version=1,
                      roles=["Observer"], grants=[])  # fmt: skip
        remove_member(w.workspace_admin, membership_id=w.memberships["observer"])
        retire_run_template(w.operator, template_id=self.retired, reason="another is better")
        revoke_waiver(w.operator, waiver_id=self.waivers[0]["waiver"], reason="the report has changed")
        disable_webhook(w.tenant_admin, webhook_id=self.hook, reason="moved")
        kill_project(w.workspace_admin, project_id=w.project, reason="it goes wild")
        KillSwitchReconciler().run_once(house.tenant)

    def _settle_money(self) -> None:
        """What nobody knew is settled, or freed; and the budget recurs from now on."""
        finance, words = self.house.world.finance, {"reason": "The bill came", "evidence": "INV-1"}
        with reading(self.house.system):
            held = {name: Reservation.objects.get(run_id=self.runs[name]).id for name in ("plain", "failed")}
            budget = Budget.objects.get()
        settle_hold(finance, reservation_id=held["plain"], cost=Decimal("1.5"), **words)
        settle_hold(finance, reservation_id=held["failed"], **words)
        change_recurrence(finance, budget_id=budget.id, recurs=True, version=budget.version)

    def _finish(self, work: Any) -> None:
        self.hand.acquire(work)
        if work.run_id == self.runs["used"]:
            self.hand.authorize(work, self.asked["used"])
            self.hand.report(work, output=1, receipts=[effect(self.asked["used"])])
        else:
            self.hand.report(work, output={"severity": "low", "again": True})


@pytest.mark.requirement("JRN-06", "FLR-03")
def test_rows_of_every_kind_follow_the_journal_from_wherever_they_stood(house: House) -> None:
    story, moments = Story(house), list[Rows]()
    for chapter in (story.begin, story.answer, story.end):
        chapter()
        moments.append(rows_now())
    first, second, kept = moments
    assert {row["state"] for row in kept["runs_lease"].values()} <= set(LEASE_TERMINAL)
    assert violations(house.tenant) == []
    with_attempts = {table: rows for table, rows in first.items() if table != "runs_attempt"}
    for older, lost in ((with_attempts, False), (first, True), (second, True)):
        put_back(older)
        told = recover()
        assert "by hand" not in told, told
        assert not (found := differences(rows_now(), kept, lost=lost)), "\n".join(found)
    assert violations(house.tenant) == []
    lose_events()
    put_back(first)
    told = recover()
    assert "is past its time" in told, "What only an event told is left to people, not made up"
    assert not (found := differences(rows_now(), kept, lost=True, by_hand=told)), "\n".join(found)
    assert not [key for key in kept["usage_reservation"] if key in told], "Money is in the journal itself"


@pytest.mark.requirement("JRN-06", "FLR-03")
def test_sums_of_usage_follow_the_records_from_wherever_they_stood(house: House) -> None:
    hand = house.hand(slots=9)
    runs = [house.run("single") for _ in range(4)]
    for work in hand.poll():
        hand.acquire(work)
        hand.report(work, output=1, receipts=[costing("1"), thinking()])
    with psycopg.connect(admin_url()) as db:
        db.execute("ALTER TABLE usage_usagesum DISABLE TRIGGER USER")
        for damage, run in zip(TORN, runs, strict=True):
            assert db.execute(damage, [run]).rowcount > 0
        db.execute("ALTER TABLE usage_usagesum ENABLE ALWAYS TRIGGER pinned_columns")
    assert "runs whose usage was added up anew: 4" in recover()
    assert violations(house.tenant) == []


TORN = [
    "UPDATE usage_usagesum SET cost = cost + 1 WHERE run_id = %s",
    "DELETE FROM usage_usagesum WHERE run_id = %s AND kind = 'model'",
    "UPDATE usage_usagesum SET day = day - 1 WHERE run_id = %s",
    "UPDATE usage_usagesum SET workflow_id = 'another' WHERE run_id = %s",
]
