"""The validity of an approval stands still while its project is suspended, and what was over stays over."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from approvals.errors import ApprovalLapsed
from approvals.selectors import ApprovalView
from projects.commands import resume_project, suspend_project
from tests.approvals.test_authorizations import approved
from tests.support.approvals import Asking
from tests.support.clocks import INSTANT, Watch, watch
from tests.support.evidence import violations

DAYS_AGO = timedelta(days=3)


@pytest.fixture
def time_(monkeypatch: pytest.MonkeyPatch) -> Watch:
    return watch(monkeypatch, datetime.now(UTC) - DAYS_AGO)


@pytest.fixture
def hourly(asker: Asking) -> Asking:
    """Under a policy whose approvals hold for an hour."""
    rule = {**asker.policy.document["rules"][0], "validHours": 1}
    return replace(asker, policy=replace(asker.policy, document={**asker.policy.document, "rules": [rule]}))


def suspended(asker: Asking, time_: Watch, **for_: float) -> None:
    who = {"project_id": asker.world.project, "reason": "an audit"}
    suspend_project(asker.world.workspace_admin, **who)
    time_.pass_(**for_)
    resume_project(asker.world.workspace_admin, **who)


def lapsed(asker: Asking, view: ApprovalView) -> str:
    with pytest.raises(ApprovalLapsed) as refusal:
        asker.take(view)
    return refusal.value.detail


def test_the_time_that_was_left_is_left_after_two_suspensions_to_the_instant(hourly, time_):
    view, start = approved(hourly), time_.at
    time_.pass_(minutes=40)
    suspended(hourly, time_, hours=5)
    time_.pass_(minutes=10)
    suspended(hourly, time_, hours=2)
    end = start + timedelta(hours=1 + 5 + 2)
    assert hourly.view(view.id).valid_until == end
    time_.at = end
    assert end.isoformat() in lapsed(hourly, view), "The end itself is already too late."
    time_.at = end - INSTANT
    assert hourly.view(view.id).use(time_.at) == "not-yet-used"
    assert hourly.take(view).authorized_at == time_.at
    assert violations(hourly.world.tenant) == []


def test_what_ended_before_a_suspension_is_not_put_off_by_it_and_shows_its_true_end(hourly, time_):
    view, start = approved(hourly), time_.at
    time_.pass_(minutes=30)
    suspended(hourly, time_, hours=1)
    time_.at = end = start + timedelta(hours=2)
    suspended(hourly, time_, hours=4)  # it begins at the end: one instant too late
    time_.pass_(hours=1)
    suspended(hourly, time_, hours=4)
    assert hourly.view(view.id).valid_until == end
    assert hourly.view(view.id).use(time_.at) == "ended-unused"
    assert lapsed(hourly, view) == f"The approval was good until {end.isoformat()}, and was not used."


def test_a_suspension_that_began_an_instant_before_the_end_leaves_that_instant(hourly, time_):
    view = approved(hourly)
    time_.pass_(hours=1)
    time_.at -= INSTANT
    suspended(hourly, time_, hours=4)
    assert hourly.take(view).authorized_at == time_.at


def test_one_given_in_a_suspension_begins_with_its_whole_time_at_the_end_of_it(hourly, time_):
    who = {"project_id": hourly.world.project, "reason": "an audit"}
    suspend_project(hourly.world.workspace_admin, **who)
    time_.pass_(hours=2)
    view = approved(hourly)
    time_.pass_(hours=20)
    assert hourly.view(view.id).use(datetime.now(UTC)) == "not-yet-used", "As long as it lasts."
    resume_project(hourly.world.workspace_admin, **who)
    assert hourly.view(view.id).valid_until == time_.pass_(hours=1)
    assert "good until" in lapsed(hourly, view)
