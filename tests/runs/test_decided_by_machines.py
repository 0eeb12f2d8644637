"""What a service account decided before that was refused: it serves nobody, and it still comes to its end."""

from typing import Any
from uuid import UUID

import pytest
from django.db import IntegrityError, connections, transaction

from approvals.commands import revoke_waiver
from approvals.errors import NotAuthorized
from approvals.reconcilers import WaiverExpiryReconciler
from factory.kernel.tenancy import reading
from projects.commands import change_member, expire_delegation, remove_member, revoke_delegation
from projects.models import Delegation, Membership
from runs.commands import retire_run_template
from tests.runs.test_waivers import asked, waits
from tests.support.delegations import end_now as end_loan
from tests.support.delegations import lend
from tests.support.evidence import journal
from tests.support.running import House
from tests.support.waivers import end_now, run_from, shown, template, waiver

BOT = "service:acme:bot"


@pytest.fixture
def house(tenant_id: str) -> House:
    """A house of which the auditor will have something to say: nobody asks it afterwards."""
    return House(tenant_id)


def older(table: str, rule: str, changes: str, row_id: UUID) -> None:
    """Make a row what it could be before the rule was there. As the tables' owner."""
    triggers = ("pinned_columns", f"{rule}_update")
    with transaction.atomic(using="owner"), connections["owner"].cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
        for name in triggers:
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER {name}")
        cursor.execute(f"UPDATE {table} SET {changes} WHERE id = %s", [row_id])
        for name in triggers:
            cursor.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}")
        cursor.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")


def given_by_machine(house: House, kind: UUID) -> UUID:
    given = waiver(house, kind)
    changes = f"decided_by = '{BOT}', deciders = '{{{BOT}}}'"
    older("approvals_waiver", "waiver_decided_by_people", changes, given)
    return given


def decided_by_machine(approval_id: UUID) -> None:
    older("approvals_approvalrequest", "approval_decided_by_people", f"decided_by = '{BOT}'", approval_id)


def test_a_waiver_that_a_machine_gave_is_revoked_and_ends_with_its_template(house: House) -> None:
    kind = template(house)
    first = given_by_machine(house, kind)
    revoke_waiver(house.world.operator, waiver_id=first, reason="a machine gave it")
    second = given_by_machine(house, kind)
    retire_run_template(house.world.operator, template_id=kind, reason="another one follows")
    assert [shown(house, one).state for one in (first, second)] == ["Revoked", "Revoked"]


def test_a_waiver_that_a_machine_gave_expires(house: House) -> None:
    given = given_by_machine(house, template(house))
    end_now(given)
    WaiverExpiryReconciler().run_once(house.tenant)
    assert journal(house.system, given)[-1] == ("Active", "Expired", "ExpiresAtPassed")


def test_a_waiver_that_a_machine_gave_serves_nobody(house: House) -> None:
    kind = template(house)
    given = given_by_machine(house, kind)
    assert waits(house, run_from(house, kind)), "people are asked"
    assert shown(house, given).uses == 0


def test_what_was_approved_under_a_waiver_of_a_machine_is_not_done(house: House) -> None:
    kind = template(house)
    given = waiver(house, kind)
    hand, work, _, view = asked(house, run_from(house, kind))
    changes = f"decided_by = '{BOT}', deciders = '{{{BOT}}}'"
    older("approvals_waiver", "waiver_decided_by_people", changes, given)
    with pytest.raises(NotAuthorized, match=f"decided by {BOT}"):
        hand.authorize(work, view.id)


def test_what_a_machine_approved_is_not_done_and_its_validity_still_begins(house: House) -> None:
    run_id, hand = house.run("gates"), house.hand("both")
    one, two = hand.poll()
    for work in (one, two):
        hand.acquire(work)
    first, second = hand.ask(one), hand.ask(two)
    house.decide(first.approval_id)
    decided_by_machine(first.approval_id)
    house.decide(second.approval_id)
    assert house.state(run_id) == "Running"
    assert journal(house.system, first.approval_id)[-1][2] == "ValidityStarted"
    with pytest.raises(NotAuthorized, match=f"decided by {BOT}"):
        hand.authorize(one, first.approval_id)
    assert hand.authorize(two, second.approval_id)


@pytest.mark.parametrize("end", ["revoked", "expired"])
def test_what_was_lent_to_a_machine_ends(house: House, end: str) -> None:
    w = house.world
    loan = lend(w.reviewer, w.operator)
    older("projects_delegation", "delegation_between_people", f"delegate = '{BOT}'", loan)
    if end == "revoked":
        revoke_delegation(w.reviewer, delegation_id=loan)
    else:
        end_loan(loan)
        row = row_of(house, Delegation, loan)
        assert expire_delegation(w.system(), delegation_id=loan, expires_at=row.expires_at)
    assert row_of(house, Delegation, loan).state == end.capitalize()


def test_a_machine_that_reviews_is_removed_and_becomes_nothing_more(house: House) -> None:
    w = house.world
    own = member(house, w.service.actor.subject)
    rule = "membership_machine_never_decides"
    older("projects_membership", rule, "roles = '{Requester,Reviewer}'", own.id)
    with pytest.raises(IntegrityError, match=rule):
        reviews_alone(own.id)
    remove_member(w.workspace_admin, membership_id=own.id)
    assert row_of(house, Membership, own.id).state == "Removed"


def test_a_machine_that_reviews_comes_down_to_what_it_may_be(house: House) -> None:
    w = house.world
    own = member(house, w.service.actor.subject)
    rule = "membership_machine_never_decides"
    older("projects_membership", rule, "roles = '{Requester,Reviewer}'", own.id)
    change_member(
        w.workspace_admin, membership_id=own.id, version=own.version, roles=("Requester",), grants=()
    )
    assert row_of(house, Membership, own.id).roles == ["Requester"]


def reviews_alone(membership_id: UUID) -> None:
    with transaction.atomic(using="owner"), connections["owner"].cursor() as cursor:
        cursor.execute("ALTER TABLE projects_membership NO FORCE ROW LEVEL SECURITY")
        cursor.execute("UPDATE projects_membership SET roles = '{Reviewer}' WHERE id = %s", [membership_id])


def row_of(house: House, model: Any, row_id: UUID) -> Any:
    with reading(house.system):
        return model.objects.get(pk=row_id)


def member(house: House, subject: str) -> Membership:
    with reading(house.system):
        found: Membership = Membership.objects.get(subject=subject, project=house.world.project)
        return found
