"""What the auditor finds about a run stops that run, and only that run, until somebody has looked."""

from datetime import timedelta
from io import StringIO
from uuid import UUID

import psycopg
import pytest
from django.core.management import CommandError, call_command

from approvals.reconcilers import ApprovalExpiryReconciler
from factory.evidence.auditor import VerificationReport, Violation
from factory.kernel.clock import now
from factory.kernel.commanding import commands
from factory.kernel.errors import DomainError, InsufficientRole
from factory.kernel.hashing import digest
from factory.kernel.models import Finding, OutboxEvent, Verification
from factory.kernel.tenancy import reading
from factory.messaging.relay.delivery import drain
from factory.messaging.relay.destinations import Handlers
from projects.commands import kill_project, resume_project, suspend_project
from runs import restore
from runs.commands import cancel_run, expire_lease, freeze_run, lift_freeze, report, resolve_step
from runs.errors import NotFrozen, RunFrozen
from runs.operations.holding import WHILE_FROZEN
from runs.reconcilers import KillSwitchReconciler, WithdrawalReconciler
from runs.selectors import run_view
from tests.kernel.damage import admin_url
from tests.support.acts import revoke, ruled
from tests.support.approvals import let_expire
from tests.support.evidence import audits, violations
from tests.support.hands import Hand
from tests.support.receipts import costing
from tests.support.running import House
from tests.support.world import subject_of
from usage.models import Reservation
from usage.reconcilers import ReservationExpiryWorker
from usage.selectors import usage_of_run
from usage.selectors.expiry import has_time

pytestmark = pytest.mark.slow


def freeze(house: House, run_id: UUID, subject: str = "") -> bool:
    return freeze_run(house.system, run_id=run_id, findings=[f"A1 {subject or f'run:{run_id}'}"])


def refused(act: object) -> str:
    with pytest.raises(DomainError) as refusal:
        act()  # type: ignore[operator]
    return refusal.value.code


def test_every_command_but_cancel_is_refused_and_others_go_on(house: House) -> None:
    run_id, gated, free = house.run(), house.run("gated"), house.run()
    hand = house.hand()
    works = {work.run_id: work for work in hand.poll()}
    for work in works.values():
        hand.acquire(work)
    asked = hand.ask(works[gated])
    assert freeze(house, run_id)
    assert freeze(house, gated)
    held = works[run_id]
    [step] = house.steps(run_id).values()
    acts = {
        "renew": lambda: hand.acquire(held),
        "report": lambda: hand.report(held, output={}),
        "ask": lambda: hand.ask(held),
        "decide": lambda: house.decide(asked.approval_id),
        "expire": lambda: expire_lease(
            house.system, lease_id=held.lease_id, fencing_token=held.fencing_token
        ),
        "resolve": lambda: resolve_step(
            house.world.operator,
            run_id=run_id,
            step_id=step.id,
            resolution="give-up",
            evidence="e",
            version=1,
        ),
    }
    assert {name: refused(act) for name, act in acts.items()} == dict.fromkeys(acts, "run-frozen")
    hand.report(works[free], output={})
    assert house.state(free) == "Completed"
    cancel_run(house.world.operator, run_id=run_id, reason="not safe")
    house.let_lapse(held.lease_id)
    assert expire_lease(house.system, lease_id=held.lease_id, fencing_token=held.fencing_token)
    assert house.state(run_id) == "Cancelled"
    lift_freeze(house.world.platform_admin, run_id=gated, reason="looked at it")
    house.decide(asked.approval_id)
    assert house.state(gated) == "Running"
    assert violations(house.tenant) == []


def test_a_frozen_run_is_stopped_whole_by_a_person_a_decree_and_the_kill_switch(house: House) -> None:
    """What it asked is withdrawn, what is parked or offered is settled, and its freeze stays on record."""
    worker, killed = house.hand(), House(f"{house.tenant}-b")
    asks, offered, blocked = house.run("gated"), house.run(), house.run()
    works = {work.run_id: work for work in worker.poll()}
    worker.acquire(works[asks])
    worker.ask(works[asks], park=True)
    theirs = killed.run()
    for place, run_id in ((house, asks), (house, offered), (house, blocked), (killed, theirs)):
        assert freeze(place, run_id)
    for run_id in (asks, offered):
        assert cancel_run(house.world.operator, run_id=run_id, reason="not safe") == "Cancelled"
    assert [each.state for each in house.approvals(asks)] == ["Cancelled"]
    revoke(house, "block")
    WithdrawalReconciler().run_once(house.tenant)
    assert (house.state(blocked), house.row(blocked).failure_class) == ("Failed", "policy-denied")
    kill_project(killed.world.workspace_admin, project_id=killed.world.project, reason="it goes wild")
    KillSwitchReconciler().run_once(killed.tenant)
    assert killed.state(theirs) == "Cancelled"
    assert house.row(asks).frozen_at is not None
    assert violations(house.tenant) + violations(killed.tenant) == []


def test_its_events_wait_for_the_lift_and_are_never_set_aside(house: House) -> None:
    run_id = house.accept()
    freeze(house, run_id)
    drain(Handlers(), house.tenant, seconds=3)
    with reading(house.system):
        [waiting] = OutboxEvent.objects.filter(run_id=run_id, handled_at__isnull=True)
        assert (waiting.handle_attempts, waiting.handle_set_aside_at) == (0, None)
        assert waiting.handle_due_at - now() > timedelta(seconds=30)
    assert set(commands()) >= WHILE_FROZEN


def test_nothing_of_a_frozen_run_is_dispatched(house: House) -> None:
    run_id = house.run()
    freeze(house, run_id)
    hand = house.hand()
    assert hand.poll() == []
    with reading(house.system):
        assert run_view(house.system, run_id).waiting.startswith("Frozen: the auditor")
    lift_freeze(house.world.platform_admin, run_id=run_id, reason="looked at it")
    assert [work.run_id for work in hand.poll()] == [run_id]


def test_a_platform_admin_alone_lifts_it_with_a_reason_and_once(house: House) -> None:
    run_id = house.run()
    freeze(house, run_id)
    for member in ("operator", "workspace_admin", "tenant_admin", "requester"):
        with pytest.raises(InsufficientRole):
            lift_freeze(getattr(house.world, member), run_id=run_id, reason="please")
    assert (
        refused(lambda: lift_freeze(house.world.platform_admin, run_id=run_id, reason=" ")) == "invalid-input"
    )
    lift_freeze(house.world.platform_admin, run_id=run_id, reason="the backup was older")
    with pytest.raises(NotFrozen):
        lift_freeze(house.world.platform_admin, run_id=run_id, reason="again")
    told = [(note.outcome, note.reason) for note in audits(house.system, "LiftFreeze")]
    assert ("done", "the backup was older") in told
    assert [o for o, _ in told].count("refused") == 6
    assert not freeze(house, run_id), "what was looked at freezes it no more"
    assert freeze(house, run_id, f"step:{run_id}")


def test_violations_of_every_kind_find_their_run(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [house.run("gated") for _ in range(5)]
    hand = house.hand(slots=9)
    works = {work.run_id: work for work in hand.poll()}
    for work in works.values():
        hand.acquire(work)
    asked = hand.ask(works[runs[3]])
    [step] = house.steps(runs[1]).values()
    subjects = [
        f"{runs[0]}#3",
        f"step:{step.id}",
        f"lease:{works[runs[2]].lease_id}",
        f"approval:{asked.approval_id}",
        f"attempt:{works[runs[4]].attempt_id}",
    ]
    found = [Violation("A1", house.tenant, subject, "wrong") for subject in subjects]
    restore.freeze_runs_of_violations(
        VerificationReport([*found, Violation("A1", house.tenant, "release:x", "wrong")])
    )
    assert all(house.row(run_id).frozen_at for run_id in runs)


def test_what_is_broken_all_over_and_what_is_held_locked_keep_no_run_from_being_frozen(house: House) -> None:
    held, broken, other = sorted(house.run() for _ in range(3))
    found = [Violation("A1", house.tenant, f"run:{run_id}", "wrong") for run_id in (held, other)]
    found += [Violation("A6", house.tenant, f"{broken}#{n}", "forged") for n in range(5000)]
    with psycopg.connect(admin_url()) as db:
        db.execute("SELECT 1 FROM runs_run WHERE id = %s FOR UPDATE", [held])
        restore.freeze_runs_of_violations(VerificationReport(found))
    assert [bool(house.row(run_id).frozen_at) for run_id in (held, broken, other)] == [False, True, True]
    lift_freeze(house.world.platform_admin, run_id=broken, reason="looked at all of it")
    restore.freeze_runs_of_violations(VerificationReport(found))
    assert not house.row(broken).frozen_at, "what was looked at freezes it no more"
    restore.freeze_runs_of_violations(
        VerificationReport([*found, Violation("A6", house.tenant, f"{broken}#9999", "more")])
    )
    assert house.row(broken).frozen_at


def test_a_verification_is_recorded_and_freezes_what_it_finds(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    from factory.evidence import verification

    run_id = house.run()
    bad = VerificationReport(
        [Violation("A1", house.tenant, f"run:{run_id}", "wrong")], [("A4", "broke")], rules=2
    )
    monkeypatch.setattr(verification, "verify", lambda codes, told: bad)
    with pytest.raises(SystemExit):
        call_command("verify", stdout=StringIO())
    with reading(house.system):
        [finding] = Finding.objects.all()
    last = Verification.objects.order_by("-started_at")[0]
    assert (finding.code, finding.verification_id, last.unchecked) == ("A1", last.id, [["A4", "broke"]])
    with pytest.raises(RunFrozen):
        _start(house, run_id)
    admin = subject_of(house.tenant, "platform_admin")
    given = {"tenant": house.tenant, "reason": "looked", "stdout": StringIO()}
    with pytest.raises(CommandError, match="role"):
        call_command("lift_freeze", str(run_id), subject=subject_of(house.tenant, "tenant_admin"), **given)
    call_command("lift_freeze", str(run_id), subject=admin, **given)
    hand: Hand = house.hand()
    assert len(hand.poll()) == 1


def _start(house: House, run_id: UUID) -> None:
    from runs.commands import start_run

    start_run(house.system, run_id=run_id)


@pytest.mark.requirement("ATT-16")
def test_what_was_paid_for_a_frozen_run_is_kept_and_moves_nothing(house: House) -> None:
    """From who holds it, and from who held it; by itself, and with an outcome that is refused."""
    held, lapsed, hand = house.run(), house.run(), house.hand()
    works = {work.run_id: work for work in hand.poll()}
    for work in works.values():
        hand.acquire(work)
    late = works[lapsed]
    house.let_lapse(late.lease_id)
    assert expire_lease(house.system, lease_id=late.lease_id, fencing_token=late.fencing_token)
    before = {run_id: (house.state(run_id), house.step_states(run_id)) for run_id in works}
    for run_id, work in works.items():
        freeze(house, run_id)
        taken = hand.receipts(work, costing("6"))  # more than the run may cost
        assert (taken.recorded, taken.superseded) == (1, run_id == lapsed)
        told = {"outcome": "Succeeded", "failureClass": None, "reason": None, "output": 1}
        outcome = {"outcome": "Succeeded", "output": 1, "outcome_hash": digest(told)}
        scope, fence = hand.scope(work.attempt_id), hand.fence(work)
        with pytest.raises(RunFrozen) as refusal:
            report(scope, **fence, receipts=[costing("1")], **outcome)
        assert refusal.value.extra["receiptsRecorded"] == 1
        with reading(house.system):
            assert usage_of_run(run_id).cost == 7
    assert before == {run_id: (house.state(run_id), house.step_states(run_id)) for run_id in works}
    assert house.attempt(works[held].attempt_id).state == "Open"
    assert violations(house.tenant) == []


def stood_still(house: House, *run_ids: UUID) -> None:
    """The runs are frozen, and were so for an hour."""
    for run_id in run_ids:
        assert freeze(house, run_id)
    house._owner(
        "UPDATE runs_freeze SET frozen_at = frozen_at - interval '1 hour' WHERE tenant_id = %s",
        [house.tenant],
        unpinned=True,
    )


def lift(house: House, *run_ids: UUID) -> None:
    for run_id in run_ids:
        lift_freeze(house.world.platform_admin, run_id=run_id, reason="looked at it")


def test_what_nobody_could_answer_while_a_run_stood_still_is_asked_once_more(house: House) -> None:
    gated, human = house.run("gated"), house.run("asked")
    worker = house.hand()
    old = {gated: worker.ask(worker.take(), park=True).approval_id, human: house.pending(human)[0].id}
    stood_still(house, gated, human)
    for approval_id in old.values():
        let_expire(approval_id)
    assert ApprovalExpiryReconciler().run_once(house.tenant).repaired == 0
    lift(house, gated, human)
    for run_id in (gated, human):
        [fresh] = house.pending(run_id)
        assert [view.state for view in house.approvals(run_id)] == ["Expired", "Pending"]
        house.decide(fresh.id)
    assert ApprovalExpiryReconciler().run_once(house.tenant).found == 0
    assert {work.run_id for work in worker.poll()} == {gated, human}
    assert violations(house.tenant) == []


def test_a_second_asking_that_nobody_could_answer_is_asked_again_and_then_no_more(house: House) -> None:
    ruled(house, onExpiry="re-request")
    run_id, worker = house.run("gated"), house.hand()
    let_expire(worker.ask(worker.take(), park=True).approval_id)
    assert ApprovalExpiryReconciler().run_once(house.tenant).repaired == 1
    [second] = house.pending(run_id)
    stood_still(house, run_id)
    let_expire(second.id, hours=0)
    lift(house, run_id)
    [last] = house.pending(run_id)
    let_expire(last.id)
    assert ApprovalExpiryReconciler().run_once(house.tenant).repaired == 1
    assert house.pending(run_id) == []
    assert [str(view.state) for view in house.approvals(run_id)] == ["Expired"] * 3
    assert violations(house.tenant) == []


def test_an_approval_is_good_for_as_long_as_it_was_when_its_run_stopped(house: House) -> None:
    run_id, worker = house.run("gated"), house.hand()
    work = worker.take()
    house.decide(worker.ask(work).approval_id)
    [before] = house.approvals(run_id)
    stood_still(house, run_id)
    lift(house, run_id)
    [after] = house.approvals(run_id)
    assert timedelta(hours=1) < after.valid_until - before.valid_until < timedelta(hours=1, minutes=5)
    worker.authorize(work, after.id)
    assert violations(house.tenant) == []


@pytest.mark.parametrize(("suspended", "resumed"), [(1, 0), (5, 4), (3, 1)])
def test_time_of_a_suspension_is_given_to_an_approval_once_and_not_lost(
    house: House, suspended: int, resumed: int
) -> None:
    """It has been good for six hours, and its run was frozen in the last two of them."""
    run_id, worker = house.run("gated"), house.hand()
    house.decide(worker.ask(worker.take()).approval_id)
    suspend_project(house.world.workspace_admin, project_id=house.world.project, reason="quiet")
    resume_project(house.world.workspace_admin, project_id=house.world.project, reason="go on")
    assert freeze(house, run_id)
    for change in (
        "approvals_approvalrequest SET valid_until = valid_until - interval '6 hours'",
        "runs_freeze SET frozen_at = frozen_at - interval '2 hours'",
        f"projects_suspension SET suspended_at = suspended_at - interval '{suspended} hours', "
        f"resumed_at = resumed_at - interval '{resumed} hours'",
    ):
        house._owner(f"UPDATE {change} WHERE tenant_id = %s", [house.tenant], unpinned=True)
    lift(house, run_id)
    [view] = house.approvals(run_id)
    stood_still = {(1, 0): 2, (5, 4): 3, (3, 1): 3}[suspended, resumed]
    left = view.valid_until - now() - view.valid_for + timedelta(hours=6 - stood_still)
    assert abs(left) < timedelta(minutes=5)


def test_the_money_of_a_run_that_stands_still_waits_with_it(house: House) -> None:
    frozen, free = house.run(), house.run()
    stood_still(house, frozen)
    house._owner(
        "UPDATE usage_reservation SET expires_at = statement_timestamp() - interval '30 minutes', "
        "due_at = statement_timestamp() - interval '30 minutes' WHERE tenant_id = %s",
        [house.tenant],
        unpinned=True,
    )
    assert ReservationExpiryWorker().run_once(house.tenant).found == 2
    lift(house, frozen)
    ReservationExpiryWorker().run_once(house.tenant)
    drain(Handlers(), house.tenant, seconds=5)
    assert (house.state(frozen), house.state(free)) == ("Accepted", "Failed")
    worker = house.hand()
    worker.report(worker.take(), output=1)
    assert house.state(frozen) == "Completed"


def test_money_gets_the_time_of_a_freeze_and_a_suspension_at_once_but_once(house: House) -> None:
    run_id = house.run()
    suspend_project(house.world.workspace_admin, project_id=house.world.project, reason="quiet")
    stood_still(house, run_id)
    for change in (
        "projects_suspension SET suspended_at = suspended_at - interval '1 hour'",
        "usage_reservation SET created_at = created_at - interval '2 hours', "
        "expires_at = statement_timestamp() - interval '30 minutes', "
        "due_at = statement_timestamp() - interval '30 minutes'",
    ):
        house._owner(f"UPDATE {change} WHERE tenant_id = %s", [house.tenant], unpinned=True)
    resume_project(house.world.workspace_admin, project_id=house.world.project, reason="go on")
    lift(house, run_id)
    with reading(house.system):
        row, at = Reservation.objects.get(run_id=run_id), now()
        assert has_time(row, at + timedelta(minutes=25))
        assert not has_time(row, at + timedelta(minutes=35))
