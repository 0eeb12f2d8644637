"""The gate at execution: what was signed is what is done, once, while it holds."""

import time
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from approvals.errors import (
    ApprovalExpired,
    ApprovalLapsed,
    ApprovalNotFound,
    AuthorizationUsed,
    NotAuthorized,
)
from approvals.selectors import ApprovalView, PolicyView
from factory.kernel import clock
from factory.kernel.tenancy import reading
from tests.approvals.test_decisions import decide
from tests.support.approvals import Asking
from tests.support.clocks import watch
from tests.support.evidence import counts, details, journal, violations

pytestmark = pytest.mark.slow


def approved(asker: Asking, **other: Any) -> ApprovalView:
    return decide(asker.world.reviewer, asker.ask(**other))


@pytest.mark.requirement("APR-09")
def test_takes_it_once_and_tells_the_same_holder_the_same(asker):
    view = approved(asker)
    taken = asker.take(view)
    before = counts(asker.house)
    assert asker.take(view) == taken
    assert counts(asker.house) == before
    assert asker.view(view.id).authorization == taken
    assert asker.view(view.id).use(clock.now()) == "used"
    assert journal(asker.house, view.id)[-1] == ("Approved", "Approved", "Authorized")
    assert details(asker.house, view.id)[-1] == {
        "attemptId": str(asker.attempt_id),
        "leaseId": str(asker.attempt_id),
        "fencingToken": (1 << 40) | 7,
        "proposalHash": view.proposal_hash,
    }
    assert violations(asker.world.tenant) == []


@pytest.mark.parametrize("other", ["attempt_id", "lease_id", "fencing_token"])
def test_nobody_else_takes_it_again(asker, other):
    view = approved(asker)
    asker.take(view)
    with pytest.raises(AuthorizationUsed):
        asker.take(view, **{other: 8 if other == "fencing_token" else uuid4()})


@pytest.mark.parametrize("other", ["run_id", "step_id"])
def test_it_is_good_for_its_own_step(asker, other):
    view = approved(asker)
    with pytest.raises(NotAuthorized):
        asker.take(view, **{other: uuid4()})
    assert asker.view(view.id).authorization is None


def test_a_later_attempt_of_the_step_may_take_it(asker):
    view = approved(asker)
    later = replace(asker, attempt_id=uuid4())
    assert later.take(view).attempt_id == later.attempt_id


@pytest.mark.requirement("APR-09")
def test_only_exactly_what_was_signed(asker):
    view = approved(asker)
    with pytest.raises(NotAuthorized):
        asker.take(view, proposal_hash="sha256:" + "0" * 64)
    assert asker.view(view.id).authorization is None


def test_there_is_no_approval_of_that_id(asker):
    with pytest.raises(ApprovalNotFound):
        asker.take(approved(asker), approval_id=uuid4())


@pytest.mark.parametrize("answer", [None, "reject", "request_changes", "cancelled"])
def test_what_is_not_approved_authorizes_nothing(asker, answer):
    view = asker.ask()
    if answer == "cancelled":
        asker.cancel()
    elif answer:
        decide(asker.world.reviewer, view, answer, reason="no")
    with pytest.raises(NotAuthorized):
        asker.take(view)


def test_what_expired_authorizes_nothing(asker, soon):
    view = asker.ask()
    time.sleep(soon)
    with pytest.raises(ApprovalExpired):
        decide(asker.world.reviewer, view)
    with pytest.raises(ApprovalExpired):
        asker.take(view)


def short(asker: Asking) -> PolicyView:
    """A policy under which an approval holds for a third of a second."""
    rule = {**asker.policy.document["rules"][0], "validHours": 0.3 / 3600}
    return replace(asker.policy, document={**asker.policy.document, "rules": [rule]})


def test_it_lapses_unused(asker):
    view = approved(asker, policy=short(asker))
    assert view.valid_for == timedelta(seconds=0.3)
    time.sleep(0.3)
    with pytest.raises(ApprovalLapsed):
        asker.take(view)
    assert asker.view(view.id).use(clock.now()) == "ended-unused"
    assert asker.ask(policy=short(asker)).id != view.id, "a lapsed approval is asked for again"


def test_the_same_holder_is_told_the_same_after_it_lapsed(asker, monkeypatch):
    view = approved(asker)
    taken = asker.take(view)
    watch(monkeypatch, taken.authorized_at + view.valid_for)
    assert asker.take(view) == taken
    assert asker.view(view.id).use(clock.now()) == "used"


def test_its_validity_starts_when_no_sibling_waits_any_more(asker):
    """The whole of it, from that moment: how fast the test is does not matter."""
    other = asker.again()
    waiting = other.ask()
    view = approved(asker)
    assert view.valid_until is None
    with reading(asker.house):
        freed = clock.now()
    decide(asker.world.reviewer2, waiting)
    for each in (view, waiting):
        until = asker.view(each.id).valid_until
        assert until is not None
        assert until >= freed + each.valid_for
    assert asker.take(view).approval_id == view.id
    assert asker.start_validity() == []
    assert violations(asker.world.tenant) == []
