"""Deciding with a lent role: judged at the decision, with both names, and never on what either asked for."""

import sys
from datetime import timedelta
from types import SimpleNamespace

import pytest

from approvals.errors import NotEligible, SeparationOfDuties
from approvals.selectors import mine, refusal_for, who_may_decide
from factory.kernel.tenancy import reading
from projects.commands import revoke_delegation
from projects.selectors import delegations_in_force
from tests.approvals.test_decisions import decide, give_role
from tests.support.delegations import end_now, lend
from tests.support.evidence import audits, counts, details, outbox, violations
from tests.support.world import context_of

pytestmark = pytest.mark.slow


@pytest.fixture
def loan(asker):
    """The reviewer has lent the role to an observer."""
    return lend(asker.world.reviewer, asker.world.observer)


@pytest.fixture
def delegate(asker, loan):
    return context_of(asker.world.observer.actor.subject, asker.world.tenant, asker.world.project)


def test_the_decision_records_both_people(asker, loan, delegate):
    view = asker.ask()
    with reading(asker.house):
        assert view.id in {row.id for row in mine(delegate)}
        told = {c.subject: (c.may_decide, c.acting_for) for c in who_may_decide(view.id)}
    assert told[delegate.actor.subject] == (True, asker.world.reviewer.actor.subject)
    done = decide(delegate, view)
    assert (done.state, done.decided_by, done.decided_for, done.delegation_id) == (
        "Approved",
        delegate.actor.subject,
        asker.world.reviewer.actor.subject,
        loan,
    )
    decided = next(d for d in details(asker.house, view.id) if d.get("decision"))
    assert (decided["onBehalfOf"], decided["delegationId"]) == (done.decided_for, str(loan))
    events = dict(outbox(asker.house, asker.run_id))
    assert events["run-control.approvals.v1.approval-decided"]["onBehalfOf"] == done.decided_for
    assert violations(asker.world.tenant) == []


@pytest.mark.requirement("APR-21")
@pytest.mark.parametrize("who", ["observer", "reviewer"])
def test_neither_of_the_two_may_have_asked(asker, loan, delegate, who):
    actor = getattr(asker.world, who).actor
    view = asker.ask(requested_by=actor.subject, requester_person=actor.person)
    before = counts(asker.house)
    with pytest.raises(SeparationOfDuties):
        decide(delegate, view)
    after = counts(asker.house)
    assert (after[0], after[1], after[2]) == (before[0], before[1], before[2] + 1)
    assert asker.view(view.id) == view
    with reading(asker.house):
        assert view.id not in {row.id for row in mine(delegate)}
        candidate = next(c for c in who_may_decide(view.id) if c.subject == delegate.actor.subject)
        assert not candidate.may_decide


def test_a_service_account_of_the_delegator_counts_as_the_delegator(asker, loan, delegate):
    view = asker.ask(requested_by="service:x:robot", requester_person=asker.world.reviewer.actor.person)
    with pytest.raises(SeparationOfDuties):
        decide(delegate, view)


def test_another_loan_of_somebody_who_did_not_ask_serves(asker, loan):
    w = asker.world
    second = lend(w.reviewer2, w.observer)
    delegate = context_of(w.observer.actor.subject, w.tenant, w.project)
    view = asker.ask(requested_by=w.reviewer.actor.subject, requester_person=w.reviewer.actor.person)
    assert decide(delegate, view).delegation_id == second


def test_its_end_is_judged_at_the_decision_and_is_already_too_late(asker, loan, delegate):
    view = asker.ask()
    end_now(loan)
    with pytest.raises(NotEligible):
        decide(delegate, view)
    assert asker.view(view.id) == view


def test_the_very_moment_of_its_end_is_too_late(asker, loan, delegate, monkeypatch):
    """Half-open: at its end it is over, and the moment before it is good."""
    with reading(asker.house):
        [end] = [lent.expires_at for lent in delegations_in_force(asker.world.project) if lent.id == loan]
    view = asker.ask()
    read = SimpleNamespace(now=lambda: end)
    monkeypatch.setattr(sys.modules["approvals.operations.deciding"], "clock", read)
    with pytest.raises(NotEligible, match="not lent any more"):
        decide(delegate, view)
    assert asker.view(view.id) == view
    read.now = lambda: end - timedelta(microseconds=1)
    assert decide(delegate, view).delegation_id == loan


def test_taken_back_is_gone(asker, loan, delegate):
    view = asker.ask()
    revoke_delegation(asker.world.reviewer, delegation_id=loan)
    with pytest.raises(NotEligible):
        decide(delegate, view)


def test_what_the_delegator_lost_the_delegate_never_had(asker, loan, delegate):
    view = asker.ask()
    give_role(asker, asker.world.reviewer, "Observer")
    with pytest.raises(NotEligible):
        decide(delegate, view)


def test_ones_own_role_is_used_first(asker):
    w, view = asker.world, asker.ask()
    lend(w.reviewer, w.reviewer2)
    own = context_of(w.reviewer2.actor.subject, w.tenant, w.project)
    done = decide(own, view)
    assert (done.decided_for, done.delegation_id) == ("", None)


def test_a_role_that_the_rule_does_not_name_is_lent_in_vain(asker):
    w = asker.world
    lend(w.operator, w.observer, "Operator")
    delegate = context_of(w.observer.actor.subject, w.tenant, w.project)
    view = asker.ask()
    with reading(asker.house):
        assert isinstance(refusal_for(delegate, view), NotEligible)


def test_a_lent_role_sees_the_proposal_while_it_may_decide(asker, loan, delegate):
    from approvals.selectors import may_see_proposal

    view = asker.ask()
    with reading(asker.house):
        assert may_see_proposal(delegate, view)
    end_now(loan)
    with reading(asker.house):
        assert not may_see_proposal(delegate, view)


def test_refusals_are_one_audit_entry_each(asker, loan, delegate):
    view = asker.ask()
    end_now(loan)
    for _ in range(2):
        with pytest.raises(NotEligible):
            decide(delegate, view)
    refused = [e for e in audits(asker.house, "DecideApproval") if e.outcome == "refused"]
    assert [e.detail["code"] for e in refused] == ["insufficient-role"] * 2
