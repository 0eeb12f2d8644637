"""Two people act at once: one order or the other, and never half of each."""

from uuid import UUID

import pytest
from django.db import DatabaseError, connection

from factory.kernel.context import system
from factory.kernel.errors import DomainError, VersionMismatch
from factory.kernel.tenancy import bound, reading
from projects.commands import (
    add_member,
    change_member,
    join_identity,
    onboard_project,
    onboard_tenant,
    remove_member,
)
from projects.commands.inputs import NewMember
from projects.errors import (
    LastAdministrator,
    MemberExists,
    MemberRemoved,
    OwnerNotMember,
    ProjectExists,
    RoleOutOfReach,
    TenantExists,
)
from projects.models import Identity, Membership
from tests.support.evidence import violations
from tests.support.issuers import outside
from tests.support.threads import at_once
from tests.support.world import World, context_of, subject_of, world

pytestmark = pytest.mark.slow


@pytest.fixture
def w(tenant_id: str) -> World:
    return world(tenant_id)


def sorted_out(answers, refusal):
    """How many succeeded; the rest must all have been refused for this one reason."""
    refused = [answer for answer in answers if isinstance(answer, Exception)]
    assert [type(answer) for answer in refused] == [refusal] * len(refused), refused
    return len(answers) - len(refused)


def test_a_member_who_is_added_eight_times_at_once_is_one_member(w):
    new = NewMember("ann@example.org", ("Reviewer",))
    acts = [lambda: add_member(w.workspace_admin, project_id=w.project, member=new)] * 8
    assert sorted_out(at_once(acts), MemberExists) == 1
    assert violations(w.tenant) == []


def test_a_tenant_wide_member_too(w):
    new = NewMember("ann@example.org", ("Observer",))
    acts = [lambda: add_member(w.tenant_admin, project_id=None, member=new)] * 6
    assert sorted_out(at_once(acts), MemberExists) == 1


def test_a_project_that_is_onboarded_five_times_at_once_is_one_project(w):
    def act():
        return onboard_project(w.tenant_admin, slug="second", name="Second", environments=[], members=[])

    assert sorted_out(at_once([act] * 5), ProjectExists) == 1
    assert violations(w.tenant) == []


def test_a_tenant_that_is_onboarded_at_once_is_one_tenant(tenant_id):
    acts = [lambda: onboard_tenant(system(tenant_id, "test"), name="Example")] * 4
    assert sorted_out(at_once(acts), TenantExists) == 1


def test_of_two_changes_decided_on_the_same_version_one_is_refused(w):
    member = w.memberships["observer"]

    def act(role):
        return lambda: change_member(
            w.workspace_admin, membership_id=member, version=1, roles=(role,), grants=()
        )

    assert sorted_out(at_once([act("Operator"), act("Reviewer"), act("Requester")]), VersionMismatch) == 1
    with reading(w.observer):
        assert Membership.objects.get(pk=member).version == 2
    assert violations(w.tenant) == []


def test_a_member_is_removed_once(w):
    acts = [lambda: remove_member(w.workspace_admin, membership_id=w.memberships["observer"])] * 4
    assert sorted_out(at_once(acts), MemberRemoved) == 1


WIDE, OWN = "zoe@example.org", "ann@example.org"
GONE = (LastAdministrator, RoleOutOfReach)
"""Who is refused is the last one, or is told so as somebody who administers nothing any more."""


def last_two(w, where):
    """The last two who administer a project, or the tenant: one of them, or both, of the tenant."""
    house = system(w.tenant, "test")
    wide = add_member(house, project_id=None, member=NewMember(WIDE, ("WorkspaceAdmin",)))
    scope = w.project if where == "project" else None
    own = add_member(house, project_id=scope, member=NewMember(OWN, ("WorkspaceAdmin",)))
    with reading(house):
        others = [one.pk for one in Membership.objects.filter(project=None).exclude(subject__in=(WIDE, OWN))]
    for one in (*others, w.memberships["workspace_admin"]):
        remove_member(house, membership_id=one)
    return {WIDE: (UUID(wide), None), OWN: (UUID(own), scope)}


def administrators(w):
    with reading(w.system()):
        return Membership.objects.filter(state="Active", roles__overlap=["WorkspaceAdmin"]).count()


@pytest.mark.parametrize("where", ["tenant", "project"])
def test_of_the_last_two_administrators_who_leave_at_once_one_stays(w, where):
    def leave(subject, member, scope):
        return lambda: remove_member(context_of(subject, w.tenant, scope), membership_id=member)

    answers = at_once([leave(subject, *found) for subject, found in last_two(w, where).items()])
    assert sorted_out(answers, LastAdministrator) == 1
    assert administrators(w) == 1
    assert violations(w.tenant) == []


def test_of_two_administrators_who_demote_each_other_at_once_one_stays(w):
    found = last_two(w, "tenant")

    def demote(by, whom):
        member, ctx = found[whom][0], context_of(by, w.tenant, None)
        return lambda: change_member(ctx, membership_id=member, version=1, roles=("Observer",), grants=())

    answers = at_once([demote(WIDE, OWN), demote(OWN, WIDE)])
    assert [type(one) for one in answers].count(type(None)) == 1, answers
    assert any(isinstance(one, GONE) for one in answers), answers
    assert administrators(w) == 1
    assert violations(w.tenant) == []


@pytest.mark.parametrize("attempt", range(4))
def test_a_service_account_never_outlives_its_owner_wherever_it_is_joining(w, attempt):
    """The owner leaves the tenant while somebody makes their machine a member of another project."""
    house = system(w.tenant, "test")
    owner = subject_of(w.tenant, "requester")
    made = onboard_project(house, slug="second", name="Second", environments=[], members=[])
    wide = add_member(house, project_id=None, member=NewMember(owner, ("Observer",)))
    remove_member(house, membership_id=w.memberships["requester"])
    machine = NewMember(w.service.actor.subject, ("Requester",))
    second = UUID(made["projectId"])
    left, joined = at_once(
        [
            lambda: remove_member(house, membership_id=UUID(wide)),
            lambda: add_member(house, project_id=second, member=machine),
        ]
    )
    assert left is None
    assert isinstance(joined, str | OwnerNotMember | DomainError), joined
    with reading(house):
        assert not Membership.objects.filter(subject=machine.subject, state="Active").exists()
    assert violations(w.tenant) == []


@pytest.mark.parametrize("attempt", range(4))
def test_who_is_removed_from_two_projects_at_once_leaves_nothing_behind(w, tmp_path, attempt):
    """Neither removal is the last one until the other has ended: then it ends the sign-ins."""
    house = system(w.tenant, "test")
    person = subject_of(w.tenant, "reviewer")
    made = onboard_project(house, slug="second", name="Second", environments=[], members=[])
    other = add_member(house, project_id=UUID(made["projectId"]), member=NewMember(person, ("Reviewer",)))
    with outside(tmp_path, "https://idp.example"):
        join_identity(
            house, issuer="https://idp.example", subject="auth0|ann", person=person, reason="Seen in person"
        )
    keys = (w.memberships["reviewer"], UUID(other))
    gone = at_once([lambda key=key: remove_member(house, membership_id=key) for key in keys])
    assert gone == [None, None]
    with reading(house):
        assert not Identity.objects.filter(person=person, state="Active").exists()
    assert violations(w.tenant) == []


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE projects_project SET slug = 'other'",
        "UPDATE projects_project SET tenant_id = 'other'",
        "UPDATE projects_membership SET subject = 'eve', person = 'eve'",
        "UPDATE projects_membership SET project_id = NULL",
        "UPDATE projects_serviceaccount SET owner = 'eve'",
        "UPDATE projects_environment SET slug = 'live'",
        "DELETE FROM projects_membership",
        "DELETE FROM projects_project",
        "TRUNCATE projects_environment",
    ],
)
def test_the_database_itself_refuses_to_rewrite_who_was_what(w, change):
    with pytest.raises(DatabaseError), bound(w.system()), connection.cursor() as cursor:
        cursor.execute(change)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE projects_membership SET state = 'Removed', removed_at = now() WHERE state = 'Active'",
        "UPDATE projects_project SET state = 'Suspended', suspended_at = now(), suspension_reason = 'x'",
        "UPDATE projects_serviceaccount SET state = 'Revoked', revoked_at = now()",
    ],
)
def test_the_database_itself_refuses_a_state_that_nobody_journaled(w, change):
    refused = pytest.raises(DatabaseError, match="without a journal entry")
    with refused, bound(w.system()), connection.cursor() as cursor:
        cursor.execute(change)
    assert violations(w.tenant) == []
