"""A waiver ends while something rests on it: what comes first holds, and what comes second does not."""

import threading
import time
from functools import partial
from typing import Any

import pytest
from django.db import connection

from approvals.commands import expire_waiver, revoke_waiver
from approvals.errors import ApprovalLapsed, WaiverOver
from factory.kernel.errors import DomainError
from runs.commands import retire_run_template
from tests.faults.rounds import rounds
from tests.runs.test_waivers import asked
from tests.support.evidence import violations
from tests.support.races import race, row_held
from tests.support.running import House
from tests.support.waivers import ask_waiver, run_from, shown, template, waiver

pytestmark = pytest.mark.slow


@pytest.fixture
def house(tenant_id: str) -> House:
    return House(tenant_id)


@pytest.mark.requirement("LTR-03")
def test_an_authorization_and_the_end_of_its_waiver(house: House) -> None:
    """Taken before the end, or refused after it; a new question is answered, or asked, to match."""
    w = house.world
    for number in range(rounds(4)):
        kind = template(house, name=f"kind-{number}")
        given = waiver(house, kind)
        hand, work, _, view = asked(house, run_from(house, kind))
        later = run_from(house, kind)
        taken, fresh, ended = race(
            lambda: hand.authorize(work, view.id),  # noqa: B023  all are over before the next round
            lambda: asked(house, later)[3],  # noqa: B023
            lambda: (
                revoke_waiver(w.reviewer2, waiver_id=given, reason="enough")  # noqa: B023
                if number % 2  # noqa: B023
                else retire_run_template(w.operator, template_id=kind, reason="enough")  # noqa: B023
            ),
        )
        assert not isinstance(ended, Exception), ended
        if isinstance(taken, Exception):
            assert isinstance(taken, ApprovalLapsed)
        else:
            assert taken.waiver_id == given
        assert fresh.state == ("Pending" if fresh.waiver_id is None else "Approved")
        assert shown(house, given).state == "Revoked"
    assert violations(house.tenant) == []


@pytest.mark.requirement("LTR-03")
def test_nothing_is_authorized_past_an_end_that_is_not_committed_yet(house: House) -> None:
    kind = template(house)
    given = waiver(house, kind)
    hand, work, _, view = asked(house, run_from(house, kind))
    end = partial(revoke_waiver, house.world.reviewer2, waiver_id=given, reason="enough")
    with row_held(house.tenant, "factory_chainhead", given, 1.0, column="stream_id"):
        ending = threading.Thread(target=lambda: (end(), connection.close()))
        ending.start()
        time.sleep(0.4)  # it has its time by now, and waits with its commit
        with pytest.raises(ApprovalLapsed):
            hand.authorize(work, view.id)
        ending.join(30)
    assert violations(house.tenant) == []


@pytest.mark.requirement("LTR-03")
def test_a_decision_and_a_withdrawal(house: House) -> None:
    """Two at once about one waiver: one of them is told that it came too late, or the yes is taken back."""
    w, kind = house.world, template(house)
    for _ in range(rounds(3)):
        one = ask_waiver(house, kind)
        acts: list[Any] = [
            lambda: house.decide(one["approval"]),  # noqa: B023
            lambda: revoke_waiver(w.workspace_admin, waiver_id=one["waiver"], reason="not now"),  # noqa: B023
            lambda: revoke_waiver(w.operator, waiver_id=one["waiver"], reason="not at all"),  # noqa: B023
            lambda: expire_waiver(house.system, waiver_id=one["waiver"], version=2),  # noqa: B023
        ]
        decided, first, second, expired = race(*acts)
        assert sorted(isinstance(end, WaiverOver) for end in (first, second)) == [False, True]
        assert isinstance(expired, DomainError), "its time has not come"
        state = shown(house, one["waiver"])
        assert (state.state, bool(state.deciders)) == ("Revoked", not isinstance(decided, Exception))
    assert violations(house.tenant) == []
