"""Lending a role: one's own, to a member, for a time; it ends by the clock, by hand, or with its ground."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from django.urls import reverse

from config.celery import app as celery
from factory.kernel.errors import Forbidden, InvalidInput, NotFound
from factory.kernel.tenancy import reading
from projects.commands import (
    add_member,
    change_member,
    expire_delegation,
    lend_role,
    remove_member,
    revoke_delegation,
)
from projects.commands.inputs import NewMember
from projects.errors import (
    DelegateNotMember,
    DelegationEnded,
    DelegationExists,
    DelegationNotDue,
    RoleNotHeld,
    RoleOutOfReach,
)
from projects.models import Delegation
from projects.reconcilers import DelegationExpiryReconciler
from projects.selectors import delegations_in_force
from tests.console.test_pages import signed_in
from tests.support.api import Api, problem
from tests.support.delegations import end_now, lend
from tests.support.evidence import audits, journal, outbox, violations
from tests.support.world import context_of, second_world, world

pytestmark = pytest.mark.slow

CHANGED = "projects.delegations.v1.delegation-changed"


@pytest.fixture
def w(tenant_id):
    return world(tenant_id)


def now_(w, member):
    """What a member's next token would give."""
    return context_of(getattr(w, member).actor.subject, w.tenant, w.project)


def row(w, delegation_id) -> Delegation:
    with reading(w.system()):
        return Delegation.objects.get(pk=delegation_id)


def test_a_lent_role_is_on_record_with_both_names(w):
    loan = lend(w.reviewer, w.observer)
    assert now_(w, "observer").actor.roles == {"Observer", "Reviewer"}
    assert now_(w, "reviewer").actor.roles == {"Reviewer"}, "who lends keeps it"
    [(topic, told)] = outbox(w.system(), loan)
    assert topic == CHANGED
    assert {k: told[k] for k in ("delegationId", "tenantId", "projectId", "state", "role")} == {
        "delegationId": str(loan),
        "tenantId": w.tenant,
        "projectId": str(w.project),
        "state": "Active",
        "role": "Reviewer",
    }
    assert (told["delegator"], told["delegate"]) == (w.reviewer.actor.subject, w.observer.actor.subject)
    assert {entry.reason for entry in audits(w.system(), "LendRole")} >= {"on leave"}
    with reading(w.system()):
        assert [d.id for d in delegations_in_force(w.project)] == [loan]
    assert violations(w.tenant) == []


def test_only_ones_own_role_is_lent(w):
    with pytest.raises(RoleNotHeld):
        lend(w.reviewer, w.observer, "Operator")
    lend(w.reviewer, w.observer)
    with pytest.raises(RoleNotHeld):
        lend(now_(w, "observer"), w.operator)
    narrowed = replace(w.reviewer, actor=replace(w.reviewer.actor, roles=frozenset({"Observer"})))
    with pytest.raises(RoleNotHeld):
        lend(narrowed, w.operator)
    with pytest.raises(InvalidInput):
        lend(w.platform_admin, w.observer, "PlatformAdmin")
    with pytest.raises(Forbidden):
        lend(w.service, w.observer, "Requester")


@pytest.mark.parametrize("who", ["reviewer", "service"])
def test_a_role_is_lent_to_another_person_of_the_project(w, who):
    with pytest.raises(DelegateNotMember):
        lend(w.reviewer, getattr(w, who))
    stranger = replace(w.observer, actor=replace(w.observer.actor, subject="nobody@else.test"))
    with pytest.raises(DelegateNotMember):
        lend(w.reviewer, stranger)


@pytest.mark.parametrize("hours", [0, -1, 24 * 91])
def test_a_loan_has_an_end_that_is_near(w, hours):
    with pytest.raises(InvalidInput):
        lend(w.reviewer, w.observer, hours=hours)


def test_a_loan_has_a_reason(w):
    with pytest.raises(InvalidInput):
        lend(w.reviewer, w.observer, reason="  ")


def test_the_same_is_lent_once(w):
    lend(w.reviewer, w.observer)
    with pytest.raises(DelegationExists):
        lend(w.reviewer, w.observer, hours=2)
    lend(w.reviewer2, w.observer)


@pytest.mark.requirement("PRJ-12", "PRJ-13", "JOB-05", "EVT-39")
def test_its_end_is_judged_at_once_and_recorded_by_the_reconciler_once(w):
    loan, other = lend(w.reviewer, w.observer), lend(w.reviewer2, w.observer)
    end_now(loan)
    revoke_delegation(w.reviewer2, delegation_id=other)
    assert now_(w, "observer").actor.roles == {"Observer"}, "before anybody has recorded the end"
    assert row(w, loan).state == "Active"
    listed = Api.as_(w.workspace_admin).get(f"/factory/projects/{w.project}/delegations").json()["items"]
    told = {one["delegationId"]: one["state"] for one in listed}
    assert told[str(loan)] == "Expired", "as of the read"
    assert DelegationExpiryReconciler().run_once(w.tenant).repaired == 1
    assert DelegationExpiryReconciler().run_once(w.tenant).found == 0
    assert row(w, loan).state == "Expired"
    assert [told["state"] for _, told in outbox(w.system(), loan)] == ["Active", "Expired"]
    assert journal(w.system(), loan)[-1] == ("Active", "Expired", "ExpiresAtPassed")
    entry = celery.conf.beat_schedule["DelegationExpiryReconciler"]
    assert "*/10" in str(entry["schedule"])
    assert violations(w.tenant) == []


def test_it_is_not_expired_before_its_time(w):
    loan = lend(w.reviewer, w.observer)
    with pytest.raises(DelegationNotDue):
        expire_delegation(w.system(), delegation_id=loan, expires_at=row(w, loan).expires_at)
    other = datetime.now(UTC) - timedelta(hours=1)
    assert expire_delegation(w.system(), delegation_id=loan, expires_at=other) is False
    with pytest.raises(Forbidden):
        expire_delegation(w.reviewer, delegation_id=loan, expires_at=other)


@pytest.mark.parametrize("who", ["reviewer", "observer", "workspace_admin", "tenant_admin"])
def test_it_is_taken_back_at_once(w, who):
    loan = lend(w.reviewer, w.observer)
    revoke_delegation(getattr(w, who), delegation_id=loan)
    assert now_(w, "observer").actor.roles == {"Observer"}
    assert row(w, loan).ended_by == getattr(w, who).actor.subject
    with pytest.raises(DelegationEnded):
        revoke_delegation(getattr(w, who), delegation_id=loan)
    assert [told["state"] for _, told in outbox(w.system(), loan)] == ["Active", "Revoked"]


@pytest.mark.parametrize("who", ["reviewer2", "operator", "requester"])
def test_nobody_else_takes_it_back(w, who):
    loan = lend(w.reviewer, w.observer)
    with pytest.raises(RoleNotHeld):
        revoke_delegation(getattr(w, who), delegation_id=loan)
    assert row(w, loan).state == "Active"


def test_it_ends_with_the_role_and_with_the_member(w):
    """Both at once by what is asked, and on record in the same commit."""
    w_ = w
    loans = [lend(w_.reviewer, w_.observer), lend(w_.operator, w_.observer, "Operator")]
    change_member(
        w_.system(), membership_id=w_.memberships["reviewer"], version=1, roles=("Observer",), grants=()
    )
    assert now_(w_, "observer").actor.roles == {"Observer", "Operator"}
    assert journal(w_.system(), loans[0])[-1] == ("Active", "Revoked", "RoleWithdrawn")
    remove_member(w_.system(), membership_id=w_.memberships["observer"])
    assert journal(w_.system(), loans[1])[-1] == ("Active", "Revoked", "MemberRemoved")
    assert violations(w_.tenant) == []


def test_a_lent_admin_role_makes_no_members(w):
    lend(w.workspace_admin, w.observer, "WorkspaceAdmin")
    borrowed = now_(w, "observer")
    assert "WorkspaceAdmin" in borrowed.actor.roles
    with pytest.raises(RoleOutOfReach):
        add_member(borrowed, project_id=w.project, member=NewMember("friend@x.test", ("Reviewer",)))
    with pytest.raises(RoleOutOfReach):
        change_member(
            borrowed,
            membership_id=w.memberships["observer"],
            version=1,
            roles=("WorkspaceAdmin",),
            grants=(),
        )


def test_a_loan_holds_in_its_project_alone(w):
    lend(w.reviewer, w.observer)
    elsewhere = context_of(w.observer.actor.subject, w.tenant, None)
    assert "Reviewer" not in elsewhere.actor.roles
    other = second_world(w.tenant)
    assert "Reviewer" not in now_(other, "observer").actor.roles
    with pytest.raises(NotFound):
        revoke_delegation(other.workspace_admin, delegation_id=lend(w.reviewer2, w.observer))


def test_over_http(w):
    path = f"/factory/projects/{w.project}/delegations"
    body = {
        "role": "Reviewer",
        "delegate": w.observer.actor.subject,
        "expiresAt": (datetime.now(UTC) + timedelta(hours=2)).isoformat(),
        "reason": "on leave",
    }
    api, key = Api.as_(w.reviewer), str(uuid4())
    made = api.post(path, body, Idempotency_Key=key)
    assert made.status_code == 201, made.content
    again = api.post(path, body, Idempotency_Key=key)
    assert (again.status_code, again.headers.get("Idempotent-Replayed")) == (201, "true")
    assert again.json() == made.json()
    told = made.json()
    assert (told["state"], told["delegator"], told["endedAt"]) == ("Active", w.reviewer.actor.subject, None)
    wrong = api.post(path, {**body, "role": "PlatformAdmin"})
    assert (wrong.status_code, problem(wrong)["errors"][0]["pointer"]) == (400, "/role")
    assert Api.as_(w.requester).post(path, body).status_code == 403
    listed = Api.as_(w.observer).get(f"{path}?state=Active").json()["items"]
    assert [item["delegationId"] for item in listed] == [told["delegationId"]]
    one = f"{path}/{told['delegationId']}"
    assert Api.as_(w.reviewer2).call("DELETE", one).status_code == 403
    assert api.call("DELETE", one).status_code == 204
    assert api.call("DELETE", one).status_code == 409
    assert api.call("DELETE", f"{path}/{uuid4()}").status_code == 404
    assert row(w, UUID(told["delegationId"])).state == "Revoked"


def test_two_at_once_lend_the_same_once(w):
    from functools import partial

    from tests.support.races import race, refusals

    lend_ = partial(
        lend_role,
        w.reviewer,
        project_id=w.project,
        role="Reviewer",
        delegate=w.observer.actor.subject,
        expires_at=datetime.now(UTC) + timedelta(hours=1),
        reason="leave",
    )
    assert refusals(race(lend_, lend_)) == ["DelegationExists"]
    with reading(w.system()):
        assert len(delegations_in_force(w.project)) == 1


def test_the_console_lends_and_keeps_what_was_written_where_it_does_not(w):
    client, where = signed_in(w.reviewer), reverse("admin:projects_lend")
    wanted = {"role": "Reviewer", "delegate": w.observer.actor.subject, "until": "2020-01-01T00:00"}
    refused = client.post(where, wanted | {"reason": "a <b>long</b> leave"})
    page = refused.content.decode()
    assert (refused.status_code, "After now, and within" in page) == (400, True)
    assert 'value="a &lt;b&gt;long&lt;/b&gt; leave"' in page
    assert f'<option value="{w.observer.actor.subject}" selected>' in page
    soon = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    assert client.post(where, wanted | {"until": soon, "reason": "leave"}).status_code == 302
    assert client.post(where, wanted | {"until": soon, "reason": "twice"}).status_code == 409
