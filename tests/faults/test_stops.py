"""What stops work meets what begins or ends it: two connections let go at once, and one order that both keep.

A project is suspended or killed, a release revoked, while a run of it is submitted, dispatched, authorized or
reported. Whoever is later by the clock, read under the lock that both take, finds what the earlier one did.
"""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest

from factory.kernel.errors import DomainError
from factory.kernel.tenancy import reading
from projects.commands import kill_project, resume_project, suspend_project
from projects.models import Suspension
from registry.models import Release
from runs.commands import start_run
from runs.models import Attempt, Run
from runs.reconcilers import KillSwitchReconciler, WithdrawalReconciler
from runs.rest.submissions import submit
from tests.faults.rounds import rounds
from tests.support.acts import newer, revoke
from tests.support.evidence import violations
from tests.support.hands import Hand
from tests.support.proposals import DIFF
from tests.support.queries import deadlocks
from tests.support.races import race
from tests.support.running import House

pytestmark = pytest.mark.slow
USUAL = 6


def stop(house: House, command: Any) -> None:
    command(house.world.workspace_admin, project_id=house.world.project, reason="stop")


def go_on(house: House) -> None:
    """After every run of a killed project was asked to stop."""
    KillSwitchReconciler().run_once(house.tenant)
    resume_project(house.world.workspace_admin, project_id=house.world.project, reason="go on")


def stopped_at(house: House) -> Any:
    with reading(house.system):
        return Suspension.objects.latest("suspended_at").suspended_at


def submission(house: House) -> UUID:
    body, _ = submit(house.world.requester, payload=house.payload(), key=str(uuid4()))
    return UUID(body["runId"])


def refused(answer: Any, *codes: str) -> bool:
    """Whether it was refused, and then in one of these words."""
    if isinstance(answer, Exception):
        assert isinstance(answer, DomainError), answer
        assert answer.code in codes, answer
    return isinstance(answer, Exception)


def sound(house: House, before: int) -> None:
    assert deadlocks() == before
    assert violations(house.tenant) == []


@pytest.mark.requirement("PRJ-02")
@pytest.mark.parametrize("command", [suspend_project, kill_project], ids=["suspend", "kill"])
def test_a_submission_is_before_the_stop_or_refused_by_it(house: House, command: Any) -> None:
    before = deadlocks()
    for _ in range(rounds(USUAL)):
        answer, stopping = race(partial(submission, house), partial(stop, house, command))
        assert stopping is None, stopping
        if not refused(answer, "project-not-active"):
            assert house.row(answer).created_at <= stopped_at(house)
        go_on(house)
        if not isinstance(answer, Exception) and command is kill_project:
            assert house.state(answer) == "Cancelled", "It was in when the switch was thrown."
    sound(house, before)


@pytest.mark.parametrize("command", [suspend_project, kill_project], ids=["suspend", "kill"])
def test_a_dispatch_is_before_the_stop_or_does_not_happen(house: House, command: Any) -> None:
    hand, before = house.hand(slots=4), deadlocks()
    for _ in range(rounds(USUAL)):
        run_id = house.run()
        works, stopping = race(hand.poll, partial(stop, house, command))
        assert stopping is None, stopping
        assert not isinstance(works, Exception), works
        offered = [work for work in works if work.run_id == run_id]
        for work in offered:
            assert house.attempt(work.attempt_id).dispatched_at <= stopped_at(house)
        go_on(house)
        if command is kill_project:
            assert house.state(run_id) == "Cancelled", "What was offered is taken back."
            continue
        [work] = offered or hand.poll()
        hand.acquire(work)
        hand.report(work, output=1)
        assert house.state(run_id) == "Completed"
    sound(house, before)


@pytest.mark.requirement("RUN-24")
def test_an_outcome_is_recorded_whenever_the_kill_switch_is_thrown(house: House) -> None:
    hand, before = house.hand(slots=4), deadlocks()

    def kill() -> None:
        stop(house, kill_project)
        KillSwitchReconciler().run_once(house.tenant)

    for _ in range(rounds(USUAL)):
        run_id = house.run()
        work = hand.take()
        told, killing = race(partial(hand.report, work, output=1), kill)
        assert killing is None, killing
        assert not isinstance(told, Exception), told
        go_on(house)
        assert house.state(run_id) in ("Completed", "Cancelled")
        assert house.attempt(work.attempt_id).state == "Succeeded"
    sound(house, before)


Begun = Callable[[House, Hand], tuple[UUID, Callable[[], Any], tuple[str, ...]]]


def to_dispatch(house: House, hand: Hand) -> tuple[UUID, Callable[[], Any], tuple[str, ...]]:
    run_id = house.run()
    return run_id, hand.poll, ()


def to_authorize(house: House, hand: Hand) -> tuple[UUID, Callable[[], Any], tuple[str, ...]]:
    run_id = house.run("gated")
    work = hand.take()
    asked = hand.ask(work).approval_id
    house.decide(asked)
    words = ("release-revoked", "run-not-working", "not-authorized", "stale-fencing-token", "lease-over")
    return run_id, partial(hand.authorize, work, asked, DIFF), words


@pytest.mark.requirement("REG-09")
@pytest.mark.parametrize("begin", [to_dispatch, to_authorize])
def test_what_a_revocation_blocks_was_begun_before_it_or_never(house: House, begin: Begun) -> None:
    """The decree is carried out at the same time, so that it meets the act half-way too."""
    hand, before = house.hand(slots=rounds(USUAL) + 4), deadlocks()

    def take_back(release_id: UUID) -> None:
        revoke(house, "block", release_id=release_id)
        WithdrawalReconciler().run_once(house.tenant)

    for number in range(rounds(USUAL)):
        release_id = newer(house, f"2.0.{number}")
        run_id, act, words = begin(house, hand)
        answer, revoking = race(act, partial(take_back, release_id))
        assert revoking is None, revoking
        begun = not refused(answer, *words)
        with reading(house.system):
            revoked_at = Release.objects.get(pk=release_id).revoked_at
            dispatched = list(Attempt.objects.filter(run_id=run_id).values_list("dispatched_at", flat=True))
        assert revoked_at is not None
        if begun and begin is to_authorize:
            assert answer.authorized_at <= revoked_at
        WithdrawalReconciler().run_once(house.tenant)
        assert (house.state(run_id), house.row(run_id).failure_class) == ("Failed", "policy-denied")
        assert len(dispatched) <= 1
        assert hand.poll() == []
    sound(house, before)


def test_a_start_is_undone_by_the_stop_that_it_met(house: House) -> None:
    """Accepted runs whose money is being set aside are reached as well."""
    before = deadlocks()
    for _ in range(rounds(USUAL)):
        run_id = house.accept()
        starting, killing = race(
            partial(start_run, house.system, run_id=run_id), partial(stop, house, kill_project)
        )
        assert killing is None, killing
        refused(starting, "project-not-active")
        go_on(house)
        assert house.state(run_id) == "Cancelled"
    with reading(house.system):
        assert not Run.objects.exclude(state="Cancelled").exists()
    sound(house, before)
