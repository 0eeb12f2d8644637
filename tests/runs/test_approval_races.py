"""Every pair of decision, expiry, cancellation, regeneration and authorization, both at once on a real run.

Whoever comes first, the end is one that one after the other could have had, and nothing happens twice.
"""

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from itertools import combinations_with_replacement
from typing import Any

import pytest

from approvals.commands import expire_approval, publish_policy_revision
from approvals.selectors import approval, authorizations_of_attempt, current_policy
from factory.kernel.errors import DomainError
from factory.kernel.tenancy import reading
from runs.commands import cancel_run
from tests.faults.rounds import rounds
from tests.support.evidence import journal, violations
from tests.support.proposals import said
from tests.support.races import race
from tests.support.running import House

pytestmark = pytest.mark.slow
ROUNDS = rounds(3)
ACTS = ("decision", "expiry", "cancellation", "regeneration", "authorization")
CLOSED = {"Approved", "Rejected", "Expired", "Stale", "Cancelled"}


@pytest.fixture
def house(tenant_id) -> House:
    return House(tenant_id)


class Round:
    """One run whose step has asked, with every act that can meet another on it."""

    def __init__(self, house: House, number: int) -> None:
        self.house, self.number = house, number
        self.run_id = house.run("gated")
        self.worker = house.hand(f"w{number}")
        self.work = self.worker.take()
        self.answer = self.worker.ask(self.work)
        with reading(house.system):
            self.view = approval(self.answer.approval_id)

    def due(self) -> None:
        """The request's time is over, or about to be: half of the rounds each."""
        microseconds = 1500 * (self.number % 4)
        self.house._owner(
            "UPDATE approvals_approvalrequest SET expires_at = clock_timestamp() "
            "+ make_interval(secs => %s) WHERE id = %s",
            [microseconds / 1_000_000, self.view.id],
            unpinned=True,
        )

    def decision(self) -> Any:
        return self.house.decide(self.view.id, by=self.house.world.reviewer)

    def expiry(self) -> Any:
        return expire_approval(self.house.system, approval_id=self.view.id, version=self.view.version)

    def cancellation(self) -> Any:
        return cancel_run(self.house.world.operator, run_id=self.run_id, reason="stop")

    def regeneration(self) -> Any:
        return self.worker.ask(self.work, proposal=said(f"another {self.number}"))

    def authorization(self) -> Any:
        return self.worker.authorize(self.work, self.view.id)


@pytest.mark.requirement("APR-10", "APR-11")
@pytest.mark.parametrize(("one", "other"), list(combinations_with_replacement(ACTS, 2)))
def test_both_at_once(house, one, other):
    for number in range(ROUNDS):
        it = Round(house, number)
        if {one, other} == {"authorization"} or ("authorization" in (one, other) and number % 2):
            it.decision()  # there is something to use
        if "expiry" in (one, other):
            it.due()
        acts: list[Callable[[], Any]] = [getattr(it, one), getattr(it, other)]
        outcomes = race(*acts)
        strange = [o for o in outcomes if isinstance(o, Exception) and not isinstance(o, DomainError)]
        assert strange == [], strange
        _check(house, it)
    assert violations(house.tenant) == []


def _check(house: House, it: Round) -> None:
    entries = journal(house.system, it.view.id)
    assert sum(before == "Pending" and after in CLOSED for before, after, _ in entries) <= 1
    with reading(house.system):
        end = approval(it.view.id)
        taken = authorizations_of_attempt(it.work.attempt_id)
    assert len(taken) <= 1
    if taken:
        assert end.state == "Approved"
        assert end.decided_at <= taken[0].authorized_at < end.valid_until
    state = house.state(it.run_id)
    waiting = house.pending(it.run_id)
    assert (state == "WaitingForApproval") == bool(waiting)
    if end.state == "Expired":
        assert state == "Failed"


@pytest.mark.requirement("POL-11")
def test_expiry_that_asks_again_meets_a_decision(house):
    with reading(house.system):
        document = deepcopy(current_policy(house.system).document)
    document["rules"][0] |= {"onExpiry": "re-request"}
    publish_policy_revision(house.world.tenant_admin, document=document)
    for number in range(ROUNDS):
        it = Round(house, number)
        it.due()
        race(it.decision, it.expiry)
        with reading(house.system):
            end = approval(it.view.id)
        waiting = house.pending(it.run_id)
        if end.state == "Approved":
            assert waiting == []
        elif end.state == "Expired":
            assert [view.renews for view in waiting] == [it.view.id]
    assert violations(house.tenant) == []


def test_the_last_two_votes_at_once(house):
    """Exactly one of them completes it: never none, never two."""
    for number in range(ROUNDS):
        run_id = house.run("narrow")
        worker = house.hand(f"v{number}", slots=50)  # it is given what was decided in earlier rounds, too
        [work] = [work for work in worker.poll() if work.run_id == run_id]
        worker.acquire(work)
        asked = worker.ask(work, park=True)
        race(
            partial(house.decide, asked.approval_id, by=house.world.workspace_admin),
            partial(house.decide, asked.approval_id, by=house.world.tenant_admin),
        )
        with reading(house.system):
            end = approval(asked.approval_id)
        assert (end.state, end.votes, end.version) == ("Approved", 2, 2), "a vote raises no version"
        assert house.state(run_id) == "Running"
    assert violations(house.tenant) == []
