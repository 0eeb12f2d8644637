"""Who is what: memberships begin, change and end, and nothing of them is rewritten."""

from uuid import UUID, uuid4

import pytest

from factory.kernel.commanding import IdempotencyKey, IdempotentReplay
from factory.kernel.context import system
from factory.kernel.errors import InsufficientRole, InsufficientScope, InvalidInput, NotFound, VersionMismatch
from factory.kernel.tenancy import reading
from projects import selectors
from projects.commands import (
    add_environment,
    add_member,
    change_member,
    onboard_project,
    register_service_account,
    remove_member,
)
from projects.commands.inputs import NewMember
from projects.errors import (
    EnvironmentExists,
    LastAdministrator,
    MemberExists,
    MemberRemoved,
    OwnerNotMember,
    RoleOutOfReach,
    ServiceAccountExists,
)
from projects.models import Membership, ServiceAccount
from projects.selectors import scopes
from projects.selectors.directory import Memberships
from tests.support import evidence
from tests.support.api import Api
from tests.support.world import World, context_of, ctx, subject_of, world

pytestmark = pytest.mark.slow

ANN = NewMember("ann@example.org", ("Reviewer",), ("payloads",), email="Ann@Example.org", display_name="Ann")
NOBODY_SPECIAL = ["requester", "reviewer", "operator", "finance", "auditor", "observer", "service"]


@pytest.fixture
def w(tenant_id: str) -> World:
    return world(tenant_id)


def add(w, context=None, member=ANN, project=...):
    project_id = w.project if project is ... else project
    return UUID(add_member(context or w.workspace_admin, project_id=project_id, member=member))


def change(w, member_id, context=None, *, version=1, roles=("Operator",), grants=()):
    change_member(
        context or w.workspace_admin, membership_id=member_id, version=version, roles=roles, grants=grants
    )


def whole(w, member):
    """Somebody in the whole tenant."""
    return context_of(subject_of(w.tenant, member), w.tenant, None)


def remove(w, member_id, context=None):
    remove_member(context or w.workspace_admin, membership_id=member_id, reason="Left")


def standing(w, subject, project=...):
    with reading(w.system()):
        return Memberships().grants_of(subject, w.tenant, w.project if project is ... else project)


def state(w, member_id):
    with reading(w.system()):
        return Membership.objects.get(pk=member_id).state


def rob(w, slug="rob", owner="requester", project=..., roles=("Requester",), context=None):
    return register_service_account(
        context or w.workspace_admin,
        project_id=w.project if project is ... else project,
        slug=slug,
        owner=subject_of(w.tenant, owner),
        roles=roles,
    )


def test_adds_a_member_with_exactly_this_evidence(w):
    member_id = add(w)
    with reading(w.observer):
        row = Membership.objects.get(pk=member_id)
    assert (row.email, row.display_name, row.kind, row.version) == ("ann@example.org", "Ann", "person", 1)
    assert evidence.journal(w.observer, member_id) == [("None", "Active", "MemberAdded")]
    assert evidence.outbox(w.observer, member_id) == []
    [audit] = [a for a in evidence.audits(w.observer, "AddMember") if a.subject == f"membership:{member_id}"]
    assert (audit.actor, audit.outcome) == (w.workspace_admin.actor.subject, "done")
    found = standing(w, "ann@example.org")
    assert found is not None
    assert (found.person, found.roles, found.grants) == ("ann@example.org", {"Reviewer"}, {"payloads"})
    assert evidence.violations(w.tenant) == []


def test_refuses_a_second_active_membership_of_one_scope(w):
    add(w)
    before = evidence.counts(w.observer)
    with pytest.raises(MemberExists) as refusal:
        add(w)
    assert [fault.pointer for fault in refusal.value.errors] == ["/subject"]
    assert evidence.counts(w.observer) == before


def test_refuses_one_person_under_two_spellings(w):
    add(w, member=NewMember("auth0|ann", ("Reviewer",)))
    other = NewMember("auth0|ANN", ("Requester",))
    for context, project in ((w.workspace_admin, w.project), (whole(w, "tenant_admin"), None)):
        with pytest.raises(InvalidInput, match="another spelling") as refusal:
            add(w, context, other, project)
        assert [fault.pointer for fault in refusal.value.errors] == ["/subject"]
        assert "auth0|ann is a member here" in refusal.value.errors[0].detail


def test_changes_roles_and_keeps_what_they_were(w):
    member_id = add(w)
    change(w, member_id, roles=("Operator", "Requester"), grants=("audit",))
    found = standing(w, "ann@example.org")
    assert (found.roles, found.grants) == ({"Operator", "Requester"}, {"audit"})
    assert evidence.journal(w.observer, member_id)[-1] == ("Active", "Active", "MemberChanged")
    assert evidence.details(w.observer, member_id)[-1] == {
        "roles": ["Requester", "Operator"],
        "grants": ["audit"],
        "rolesBefore": ["Reviewer"],
        "grantsBefore": ["payloads"],
    }
    assert evidence.violations(w.tenant) == []


def test_refuses_a_change_that_was_decided_on_an_older_version(w):
    member_id = add(w)
    change(w, member_id)
    with pytest.raises(VersionMismatch):
        change(w, member_id, version=1, roles=("Observer",))
    assert standing(w, "ann@example.org").roles == {"Operator"}


def test_removes_a_member_and_keeps_the_row(w):
    member_id = add(w)
    remove(w, member_id)
    assert standing(w, "ann@example.org") is None
    assert state(w, member_id) == "Removed"
    assert evidence.journal(w.observer, member_id)[-1] == ("Active", "Removed", "MemberRemoved")
    [audit] = evidence.audits(w.observer, "RemoveMember")
    assert (audit.subject, audit.reason) == (f"membership:{member_id}", "Left")
    assert add(w) != member_id
    assert evidence.violations(w.tenant) == []


@pytest.mark.parametrize("act", [change, remove])
def test_refuses_what_has_ended(w, act):
    member_id = add(w)
    remove(w, member_id)
    before = evidence.counts(w.observer)
    with pytest.raises(MemberRemoved):
        act(w, member_id)
    assert evidence.counts(w.observer) == before


@pytest.mark.requirement("IDN-10")
@pytest.mark.parametrize("act", [change, remove])
def test_another_tenants_member_is_not_found(w, act):
    member_id, other = add(w), world(f"{w.tenant}-b")
    for stranger in (other.workspace_admin, other.tenant_admin, other.platform_admin):
        with pytest.raises(NotFound):
            act(w, member_id, stranger)
        with pytest.raises(NotFound):
            add(w, stranger, NewMember("eve@example.org", ("Observer",)))
    assert standing(w, "ann@example.org").roles == {"Reviewer"}


def test_a_project_of_the_same_tenant_is_as_far_away(w):
    made = onboard_project(
        w.system(),
        slug="second",
        name="Second",
        environments=[],
        members=[NewMember("bob@x.org", ("WorkspaceAdmin",))],
    )
    bob = context_of("bob@x.org", w.tenant, UUID(made["projectId"]))
    member_id = add(w)
    with pytest.raises(NotFound):
        add(w, bob, NewMember("eve@example.org", ("Observer",)))
    for act in (change, remove):
        with pytest.raises(NotFound):
            act(w, member_id, bob)
    with pytest.raises(NotFound):
        change(w, uuid4())


@pytest.mark.parametrize("member", NOBODY_SPECIAL)
def test_refuses_every_role_but_an_admin(w, member):
    member_id, context = w.memberships["observer"], getattr(w, member)
    with pytest.raises(InsufficientRole):
        add(w, context)
    with pytest.raises(InsufficientRole):
        change(w, member_id, context)
    with pytest.raises(InsufficientRole):
        remove(w, member_id, context)
    with pytest.raises(InsufficientRole):
        rob(w, context=context)
    with pytest.raises(InsufficientRole):
        add_environment(context, project_id=w.project, slug="lab")


def test_refuses_a_token_without_the_scope(w):
    reader = ctx(w.workspace_admin, scopes=["factory.projects.read"])
    with pytest.raises(InsufficientScope):
        add(w, reader)
    with pytest.raises(InsufficientScope):
        change(w, w.memberships["observer"], reader)
    with pytest.raises(InsufficientScope):
        remove(w, w.memberships["observer"], reader)


def test_an_admin_of_a_project_gives_nothing_in_the_whole_tenant(w):
    with pytest.raises(RoleOutOfReach):
        add(w, member=ANN, project=None)
    with pytest.raises(RoleOutOfReach):
        rob(w, project=None, owner="tenant_admin")
    with pytest.raises(InvalidInput, match="not valid"):
        add(w, member=NewMember("eve@example.org", ("PlatformAdmin",)))


def test_only_a_platform_admin_decides_who_is_one(w):
    eve = NewMember("eve@example.org", ("PlatformAdmin",))
    with pytest.raises(RoleOutOfReach):
        add(w, w.tenant_admin, eve, project=None)
    wide = context_of(subject_of(w.tenant, "platform_admin"), w.tenant, None)
    member_id = add(w, wide, eve, project=None)
    admin = context_of(subject_of(w.tenant, "tenant_admin"), w.tenant, None)
    for act in (change, remove):
        with pytest.raises(RoleOutOfReach):
            act(w, member_id, admin)
    remove(w, member_id, wide)


@pytest.mark.parametrize(
    ("member", "pointer"),
    [
        (NewMember("", ("Reviewer",)), "/subject"),
        (NewMember("ann", ()), "/roles"),
        (NewMember("ann", ("Chief",)), "/roles/0"),
        (NewMember("ann", ("Reviewer",), ("gold",)), "/grants/0"),
        (NewMember("service:x:none", ("Requester",)), "/subject"),
        (NewMember("system:relay", ("Requester",)), "/subject"),
        (NewMember("worker:pool", ("Requester",)), "/subject"),
    ],
)
def test_points_at_what_is_wrong_with_a_member(w, member, pointer):
    with pytest.raises(InvalidInput) as refusal:
        add(w, member=member)
    assert [fault.pointer for fault in refusal.value.errors] == [pointer]


def test_happens_once_under_a_key(w):
    keyed = add_member.under(IdempotencyKey("k", "sha256:a"))
    made = keyed(w.workspace_admin, project_id=w.project, member=ANN)
    with pytest.raises(IdempotentReplay) as again:
        keyed(w.workspace_admin, project_id=w.project, member=ANN)
    assert again.value.result == made


def test_standing_adds_up_over_project_and_tenant(w):
    add(w)
    add(w, w.tenant_admin, NewMember("ann@example.org", ("Observer",), ("audit",)), project=None)
    assert standing(w, "ann@example.org").roles == {"Reviewer", "Observer"}
    assert standing(w, "ann@example.org").grants == {"payloads", "audit"}
    assert standing(w, "ann@example.org", None).roles == {"Observer"}
    assert standing(w, "ann@example.org", uuid4()) is None
    assert standing(w, "nobody@example.org") is None


def test_a_service_account_answers_with_its_own_roles_and_its_owners_person(w):
    subject = rob(w, roles=("Operator", "Requester"))
    assert subject == f"service:{w.tenant}:rob"
    found, owner = standing(w, subject), subject_of(w.tenant, "requester")
    assert (found.person, found.roles) == (owner, {"Operator", "Requester"})
    with reading(w.system()):
        account = ServiceAccount.objects.get(subject=subject)
        assert selectors.person_of(subject) == owner
        assert selectors.person_of(owner) == owner
    assert evidence.journal(w.observer, account.id) == [("None", "Active", "ServiceAccountRegistered")]
    assert evidence.violations(w.tenant) == []


def test_refuses_a_service_account_that_nobody_answers_for(w):
    for owner in ("nobody", "workspace_adminx"):
        with pytest.raises(OwnerNotMember):
            rob(w, owner=owner)
    with pytest.raises(OwnerNotMember):
        register_service_account(
            w.workspace_admin,
            project_id=w.project,
            slug="rob",
            owner=w.service.actor.subject,
            roles=("Observer",),
        )
    with pytest.raises(ServiceAccountExists):
        rob(w, slug="robot")
    with pytest.raises(InvalidInput):
        rob(w, slug="No Slug")


def test_a_service_account_ends_with_the_last_membership_of_its_owner(w):
    subject = w.service.actor.subject
    remove(w, w.memberships["requester"])
    assert standing(w, subject) is None
    with reading(w.system()):
        account = ServiceAccount.objects.get(subject=subject)
        [member] = Membership.objects.filter(subject=subject)
    assert (account.state, member.state) == ("Revoked", "Removed")
    assert evidence.journal(w.observer, account.id)[-1] == ("Active", "Revoked", "OwnerRemoved")
    assert evidence.journal(w.observer, member.id)[-1] == ("Active", "Removed", "OwnerRemoved")
    assert evidence.violations(w.tenant) == []


def test_a_service_account_leaves_only_where_its_owner_leaves(w):
    owner = subject_of(w.tenant, "requester")
    made = onboard_project(
        w.system(), slug="second", name="Second", environments=[], members=[NewMember(owner, ("Requester",))]
    )
    second, subject = UUID(made["projectId"]), w.service.actor.subject
    add(w, system(w.tenant, "test"), NewMember(subject, ("Requester",)), second)
    remove(w, w.memberships["requester"])
    assert standing(w, subject) is None
    assert standing(w, subject, second).roles == {"Requester"}
    told = set()
    for name in (subject, f"service:{w.tenant}:nobody"):
        with pytest.raises(InvalidInput, match="nobody who can be a member here") as refused:
            add(w, member=NewMember(name, ("Requester",)))
        told.add(f"{refused.value} {refused.value.errors}".replace(name, "*"))
    assert len(told) == 1, "whose machines other projects have is not told to who administers this one"
    with pytest.raises(OwnerNotMember, match=owner):
        add(w, whole(w, "tenant_admin"), NewMember(subject, ("Requester",)))
    assert evidence.violations(w.tenant) == []


def test_the_last_platform_admin_neither_leaves_nor_gives_up_the_role(w):
    own = add(w, system(w.tenant, "test"), NewMember("pat@example.org", ("PlatformAdmin", "Observer")), None)
    with reading(w.system()):
        first = Membership.objects.get(subject=w.platform_admin.actor.subject)
    pat = context_of("pat@example.org", w.tenant, None)
    with pytest.raises(VersionMismatch):
        change(w, first.pk, pat, version=7, roles=("WorkspaceAdmin",))
    change(w, first.pk, pat, roles=("WorkspaceAdmin",))
    for act in (
        lambda: change(w, own, pat, roles=("WorkspaceAdmin",)),
        lambda: remove(w, own, pat),
    ):
        with pytest.raises(LastAdministrator, match="the only PlatformAdmin of the tenant"):
            act()
    change(w, own, pat, roles=("PlatformAdmin",))
    change(w, first.pk, pat, version=2, roles=("PlatformAdmin",))
    remove(w, own, pat)
    assert evidence.violations(w.tenant) == []


def test_where_nobody_is_a_platform_admin_nothing_is_asked_of_one(w):
    house = system(w.tenant, "test")
    with reading(w.system()):
        [platform, admin] = [
            Membership.objects.get(subject=one.actor.subject) for one in (w.platform_admin, w.tenant_admin)
        ]
    remove(w, platform.pk, house)
    add(w, house, NewMember("zoe@example.org", ("WorkspaceAdmin",)), None)
    change(w, admin.pk, context_of("zoe@example.org", w.tenant, None))
    with reading(w.system()):
        assert Membership.objects.get(pk=admin.pk).roles == ["Operator"]


@pytest.mark.parametrize(
    "odd", ["a\nb", "a\u200bb", "a\u202eb", "a\u2028b", "a\u3164b", "a\ufe0fb", "a\x00b"]
)
def test_all_of_a_subject_can_be_seen(w, odd):
    body = {"subject": odd, "roles": ["Observer"]}
    answer = Api.as_(w.workspace_admin).post(f"/factory/projects/{w.project}/members", body)
    assert answer.status_code == 400
    assert [fault["pointer"] for fault in answer.json()["errors"]] == ["/subject"]


def test_adds_an_environment_and_refuses_its_name_twice(w):
    made = add_environment(w.workspace_admin, project_id=w.project, slug="lab", name="The lab")
    with reading(w.observer):
        view = selectors.environment(w.project, UUID(made))
        assert selectors.environment(uuid4(), UUID(made)) is None
    assert (view.slug, view.name) == ("lab", "The lab")
    [audit] = evidence.audits(w.observer, "AddEnvironment")
    assert audit.subject == f"environment:{made}"
    with pytest.raises(EnvironmentExists):
        add_environment(w.workspace_admin, project_id=w.project, slug="lab")
    with pytest.raises(InvalidInput):
        add_environment(w.workspace_admin, project_id=w.project, slug="The Lab")
    with pytest.raises(NotFound):
        add_environment(world(f"{w.tenant}-b").workspace_admin, project_id=w.project, slug="lab2")


def test_lists_who_holds_a_role_at_this_moment(w):
    with reading(w.observer):
        found = selectors.members(w.project, ["Reviewer", "WorkspaceAdmin"])
    assert {(m.subject.split("@")[0], m.role) for m in found} == {
        ("reviewer", "Reviewer"),
        ("reviewer2", "Reviewer"),
        ("workspace-admin", "WorkspaceAdmin"),
        ("tenant-admin", "WorkspaceAdmin"),
    }


def test_a_session_finds_its_places_across_tenants(w):
    other = world(f"{w.tenant}-b")
    add(w, member=NewMember("ann@example.org", ("Reviewer",)))
    both = f"both@{w.tenant}.test"
    add(w, member=NewMember(both, ("Reviewer",)))
    add(other, other.tenant_admin, NewMember(both, ("Observer",)), project=None)
    places = scopes.scopes_of_user(both)
    assert [(p.tenant_id, p.project_id, p.project_slug, p.roles) for p in places] == [
        (w.tenant, w.project, "main", ("Reviewer",)),
        (other.tenant, None, "", ("Observer",)),
        (other.tenant, other.project, "main", ("Observer",)),
    ]
    assert selectors.memberships_of_user("nobody@example.org") == []
    remove(w, _membership(w, both))
    assert {p.tenant_id for p in scopes.scopes_of_user(both)} == {other.tenant}


def _membership(w, subject):
    with reading(w.system()):
        return Membership.objects.get(subject=subject, state="Active").id


def test_a_person_is_found_once_in_a_project_or_in_any_of_the_tenant(w):
    with reading(w.system()):
        here = [one.subject for one in selectors.people_like(w.project, "reviewer")]
        anywhere = [one.subject for one in selectors.people_like(None, "reviewer")]
        elsewhere = [one.subject for one in selectors.people_like(uuid4(), "reviewer")]
    assert w.reviewer.actor.subject in here
    assert anywhere == here
    assert len(set(here)) == len(here)
    assert w.reviewer.actor.subject not in elsewhere
