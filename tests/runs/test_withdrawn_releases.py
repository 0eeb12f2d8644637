"""A release is taken out of use: what becomes of the runs in flight."""

import pytest

from factory.kernel.tenancy import reading
from registry.errors import ReleaseNotPublished
from registry.selectors import load_release, withdrawal_of
from runs.commands import follow_withdrawal
from runs.errors import ReleaseRevoked
from runs.models import CancellationIntent
from runs.reconcilers import WithdrawalReconciler
from tests.support.acts import deliver, deprecate, needed, newer, revoke
from tests.support.evidence import audits, journal, outbox, violations
from tests.support.running import House

pytestmark = pytest.mark.slow


@pytest.mark.requirement("REG-09")
def test_block_fails_open_runs_at_once_and_the_news_does_it(house: House) -> None:
    waiting, accepted = house.run("gated"), house.accept()
    worker = house.hand()
    work = worker.take()
    worker.ask(work)
    revoke(house, "block", "it leaks")
    deliver(house)
    for run_id, before in ((waiting, "WaitingForApproval"), (accepted, "Accepted")):
        row = house.row(run_id)
        assert (row.state, row.failure_class) == ("Failed", "policy-denied")
        assert row.reason == "The release sample@1.0.0 was revoked: it leaks"
        assert journal(house.system, run_id)[-1] == (before, "Failed", "ReleaseRevoked")
        assert [topic for topic, _ in outbox(house.system, run_id)].count(
            "run-control.runs.v1.run-failed"
        ) == 1
    assert [a.state for a in house.approvals(waiting)] == ["Cancelled"]
    assert worker.acquire(work).cancel_requested
    worker.report(work, "Cancelled", "cancellation")
    assert house.state(waiting) == "Failed", "It may report once, and that moves nothing."


@pytest.mark.requirement("REG-09", "RUN-25", "POL-08")
def test_cancel_is_policys_and_lost_news_is_made_up_for(house: House) -> None:
    held, idle, over = house.run(), house.run(), house.run()
    worker = house.hand()
    by_run = {work.run_id: work for work in worker.poll()}
    for run_id in (held, over):
        worker.acquire(by_run[run_id])
    worker.report(by_run[over], output=1)
    revoke(house, "cancel", "it leaks")
    assert WithdrawalReconciler().run_once(house.tenant).repaired == 2
    assert [house.state(r) for r in (held, idle, over)] == ["Cancelling", "Cancelled", "Completed"]
    with reading(house.system):
        intent = CancellationIntent.objects.get(run_id=held)
    assert intent.requested_by == f"policy:{house.row(held).policy_revision}"
    assert intent.reason == "The release sample@1.0.0 was revoked: it leaks"
    deliver(house)
    assert WithdrawalReconciler().run_once(house.tenant).found == 0
    assert follow_withdrawal(house.system, run_id=held) == "Cancelling"
    assert len(audits(house.system, "CancelRun")) == 2, "Twice is once."


def test_one_that_stopped_half_way_is_gone_on_with(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [house.run() for _ in range(3)]
    revoke(house, "block")
    found = WithdrawalReconciler().find(None, house.tenant)
    follow_withdrawal(house.system, run_id=found[0].id)
    assert sorted(house.state(run_id) for run_id in runs) == ["Accepted", "Accepted", "Failed"]
    WithdrawalReconciler().run_once(house.tenant)
    assert {house.state(run_id) for run_id in runs} == {"Failed"}


@pytest.mark.requirement("REG-17")
def test_a_deprecation_blocks_too_and_says_so(house: House) -> None:
    run_id = house.run()
    newer(house)
    deprecate(house, "block")
    deliver(house)
    assert journal(house.system, run_id)[-1] == ("Accepted", "Failed", "ReleaseDeprecated")
    with reading(house.system):
        assert load_release(house.release)["version"] == "1.0.0"


@pytest.mark.requirement("REG-09")
def test_drain_lets_them_finish_but_authorizes_nothing_of_a_revoked_release(house: House) -> None:
    gated, single = house.run("gated"), house.run()
    worker = house.hand()
    by_run = {work.run_id: work for work in worker.poll()}
    for work in by_run.values():
        worker.acquire(work)
    asked = worker.ask(by_run[gated])
    house.decide(asked.approval_id)
    revoke(house, "drain")
    deliver(house)
    assert WithdrawalReconciler().run_once(house.tenant).found == 0
    with pytest.raises(ReleaseRevoked):
        worker.authorize(by_run[gated], asked.approval_id)
    worker.report(by_run[single], output=1)
    assert house.state(single) == "Completed"


def test_nothing_more_is_dispatched_before_the_run_has_heard(house: House) -> None:
    run_id = house.run()
    worker = house.hand()
    revoke(house, "block")
    assert worker.poll() == []
    assert house.state(run_id) == "Accepted"


def test_a_submission_that_lost_against_the_revocation_is_refused(house: House) -> None:
    revoke(house, "block")
    with pytest.raises(ReleaseNotPublished):
        house.accept()
    with pytest.raises(ReleaseNotPublished):
        house.accept(releaseAlias=None, releaseId=str(house.release))
    assert violations(house.tenant) == []


def test_the_strictest_decree_over_what_a_release_needs_stands(house: House) -> None:
    base = needed(house)
    needing = newer(house, dependencies=["base@1.0.0"])
    run_id = house.accept()
    assert house.row(run_id).release_id == needing
    revoke(house, "block", release_id=base)
    with reading(house.system):
        decree = withdrawal_of(needing)
    assert decree is not None
    assert (decree.release, decree.in_flight) == ("base@1.0.0", "block")
    deliver(house)
    assert (house.state(run_id), house.row(run_id).failure_class) == ("Failed", "policy-denied")
    with pytest.raises(ReleaseNotPublished, match="needs another one that is Revoked"):
        house.accept()
