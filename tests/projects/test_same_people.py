"""People are compared: nobody decides on what they asked for by another name."""

import pytest

from approvals.errors import AlreadyVoted, SeparationOfDuties
from approvals.selectors import mine
from factory.kernel.addresses import normal_address
from factory.kernel.tenancy import reading
from projects.commands import register_service_account, remove_member
from projects.errors import AddressTaken, MemberExists
from tests.approvals.test_decisions import decide
from tests.projects.people import add, as_before, enter, join
from tests.support.approvals import asking
from tests.support.evidence import violations
from tests.support.issuers import Outside
from tests.support.world import context_of as standing_of


def test_nobody_decides_on_what_they_asked_for_by_another_sign_in(tenant_id, idp: Outside, stage):
    """The one that submits comes by the issuer, the one that approves signs in to the console."""
    asker = asking(tenant_id)
    w = asker.world
    by_issuer = enter(idp.token(w, "opaque-7", email=w.reviewer.actor.subject, email_verified=True)).actor
    view = asker.ask(requested_by=by_issuer.subject, requester_person=by_issuer.person)
    with pytest.raises(SeparationOfDuties):
        decide(w.reviewer, view)
    with reading(asker.house):
        assert mine(w.reviewer).count() == 0


def test_what_somebody_asked_for_as_another_member_stays_theirs(tenant_id, idp: Outside, stage):
    """Two members were one person: one membership is ended, and its sign-in is joined to the other."""
    asker = asking(tenant_id)
    w = asker.world
    key = add(w, "auth0|bob", ("Requester",))
    view = asker.ask(requested_by="auth0|bob", requester_person="auth0|bob")
    remove_member(w.workspace_admin, membership_id=key)
    join(w, "auth0|bob", w.reviewer.actor.subject)
    with pytest.raises(SeparationOfDuties):
        decide(w.reviewer, view)
    with reading(asker.house):
        assert mine(w.reviewer).count() == 0
        assert mine(w.reviewer2).count() == 1
    decide(w.reviewer2, view)
    assert violations(w.tenant) == []


SHARED = [("auth0|bob", "{reviewer}"), ("auth0|bob", " {REVIEWER} "), ("{REVIEWER} ", "")]


@pytest.mark.parametrize(("subject", "email"), SHARED)
@pytest.mark.parametrize("state", ["Active", "Removed"])
def test_who_shares_an_address_with_who_asked_does_not_decide(tenant_id, stage, email, subject, state):
    asker = asking(tenant_id)
    w = asker.world
    words = {"reviewer": w.reviewer.actor.subject, "REVIEWER": w.reviewer.actor.subject.upper()}
    told = subject.format(**words)
    other = as_before(w, told, ("Requester",), email.format(**words))
    if state == "Removed":
        remove_member(w.workspace_admin, membership_id=other.id)
    view = asker.ask(requested_by=told, requester_person=told)
    with pytest.raises(SeparationOfDuties):
        decide(w.reviewer, view)
    with reading(asker.house):
        assert mine(w.reviewer).count() == 0
        assert mine(w.reviewer2).count() == 1
    decide(w.reviewer2, view)
    assert {v.code for v in violations(w.tenant)} <= {"P7", "P9"}


def test_a_machine_of_who_shares_an_address_asks_for_them(tenant_id, stage):
    asker = asking(tenant_id)
    w = asker.world
    as_before(w, "auth0|bob", ("Requester",), w.reviewer.actor.subject)
    machine = register_service_account(
        w.system(), project_id=w.project, slug="bobs", owner="auth0|bob", roles=("Requester",)
    )
    view = asker.ask(requested_by=machine, requester_person="auth0|bob")
    with pytest.raises(SeparationOfDuties):
        decide(w.reviewer, view)


def test_what_an_address_asked_for_is_not_decided_by_a_sign_in_that_has_verified_it(
    tenant_id, idp: Outside, stage
):
    """The member leaves, and comes back by the issuer's name for them: no membership tells the two."""
    asker = asking(tenant_id)
    w = asker.world
    key = add(w, "bob@acme.test", ("Requester",))
    view = asker.ask(requested_by="bob@acme.test", requester_person="bob@acme.test")
    remove_member(w.workspace_admin, membership_id=key)
    add(w, "auth0|bob")
    ctx = enter(idp.token(w, "auth0|bob", email="Bob@acme.test", email_verified=True))
    assert ctx.actor.subject == "auth0|bob"
    with reading(asker.house):
        assert mine(ctx).count() == 0
    with pytest.raises(SeparationOfDuties):
        decide(ctx, view)


@pytest.mark.parametrize("before", ["Bob@Acme.test", "bob@acme.test ", "bob@b\u00fccher.example"])
def test_an_old_spelling_of_an_address_is_found_before_a_second_member_joins(w, before):
    address = normal_address(before)
    old = as_before(w, "auth0|bob", email=before)
    with pytest.raises(AddressTaken):
        add(w, address)
    remove_member(w.workspace_admin, membership_id=old.id)
    old = as_before(w, before)
    with pytest.raises(MemberExists):
        add(w, address)
    with pytest.raises(AddressTaken):
        add(w, "auth0|bob", email=address)
    remove_member(w.workspace_admin, membership_id=old.id)
    add(w, address)
    assert violations(w.tenant) == []


def test_two_members_of_one_address_are_one_vote_of_a_quorum(tenant_id, stage):
    """A database from before may hold them: the second yes is refused, and one that was cast counts once."""
    asker = asking(tenant_id)
    w = asker.world
    ask = asker.ask(policy=asker.ruled(quorum=2))
    as_before(w, "auth0|twin", ("Reviewer",), w.reviewer.actor.subject.upper())
    decide(w.reviewer, ask)
    twin = standing_of("auth0|twin", w.tenant, w.project)
    with reading(twin):
        assert ask.id not in {row.id for row in mine(twin)}
    with pytest.raises(AlreadyVoted):
        decide(twin, ask)
    assert decide(w.reviewer2, ask).state == "Approved"
