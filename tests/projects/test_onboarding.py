"""Tenants and projects begin: all of it, or nothing."""

from dataclasses import replace
from uuid import UUID

import pytest

from factory.kernel.commanding import IdempotencyKey, IdempotentReplay
from factory.kernel.context import system
from factory.kernel.errors import (
    Forbidden,
    IdempotencyConflict,
    InsufficientRole,
    InsufficientScope,
    InvalidInput,
    NotFound,
)
from factory.kernel.tenancy import reading
from projects import selectors
from projects.commands import onboard_project, onboard_tenant
from projects.commands.inputs import NewEnvironment, NewMember
from projects.errors import ProjectExists, RoleOutOfReach, TenantExists
from projects.models import Membership, Project, Tenant
from tests.support import evidence
from tests.support.world import World, context_of, ctx, subject_of, world

TOPIC = "projects.projects.v1.project-state-changed"


@pytest.fixture
def w(tenant_id: str) -> World:
    return world(tenant_id)


def onboard(context, slug="second", **changes):
    values = {
        "slug": slug,
        "name": "The second",
        "environments": [NewEnvironment("staging"), NewEnvironment("production", "Production")],
        "members": [NewMember("ann@example.org", ("Reviewer", "Requester"), ("payloads",))],
    }
    return onboard_project(context, **{**values, **changes})


def test_makes_a_tenant_and_audits_it(tenant_id):
    house = system(tenant_id, "test")
    assert onboard_tenant(house, name="  Example  ") == tenant_id
    with reading(house):
        assert selectors.tenant(tenant_id) == selectors.TenantView(tenant_id, "Example")
    [entry] = evidence.audits(house, "OnboardTenant")
    assert (entry.subject, entry.outcome, entry.actor) == (f"tenant:{tenant_id}", "done", "system:test")


def test_refuses_a_tenant_that_is_there(w):
    with pytest.raises(TenantExists):
        onboard_tenant(w.system(), name="Again")


@pytest.mark.parametrize("slug", ["Upper", "with space", "-edge", "edge-", "dot.ted", "line\n"])
def test_refuses_a_tenant_id_that_is_no_slug(slug):
    with pytest.raises(InvalidInput) as refusal:
        onboard_tenant(system(slug, "test"), name="Example")
    assert [fault.pointer for fault in refusal.value.errors] == ["/id"]


def test_leaves_the_making_of_tenants_to_the_house(w):
    with pytest.raises(Forbidden):
        onboard_tenant(w.platform_admin, name="Mine")


@pytest.mark.requirement("PRJ-01", "PRJ-04")
def test_makes_project_environments_and_members_in_one_step(w):
    made = onboard(w.tenant_admin)
    project_id = UUID(made["projectId"])
    with reading(w.tenant_admin):
        project = selectors.project(project_id)
        assert project == selectors.ProjectView(project_id, w.tenant, "second", "The second", "Active")
        assert [(e.slug, e.name) for e in selectors.environments(project_id)] == [
            ("production", "Production"),
            ("staging", "staging"),
        ]
        [ann] = [m for m in selectors.members(project_id) if m.subject == "ann@example.org"]
    assert (ann.roles, ann.grants, ann.person) == (
        ("Requester", "Reviewer"),
        ("payloads",),
        "ann@example.org",
    )
    assert evidence.journal(w.tenant_admin, project_id) == [("None", "Active", "Onboarded")]
    assert evidence.outbox(w.tenant_admin, project_id) == [
        (
            TOPIC,
            {
                "projectId": str(project_id),
                "tenantId": w.tenant,
                "fromState": None,
                "toState": "Active",
                "cause": "Onboarded",
            },
        )
    ]
    member_id = UUID(made["members"]["ann@example.org"])
    assert evidence.journal(w.tenant_admin, member_id) == [("None", "Active", "MemberAdded")]
    assert evidence.details(w.tenant_admin, member_id) == [
        {"roles": ["Requester", "Reviewer"], "grants": ["payloads"]}
    ]
    assert evidence.violations(w.tenant) == []


def test_a_name_is_one_line(w):
    with pytest.raises(InvalidInput) as refusal:
        onboard(
            w.tenant_admin,
            name="Evil\nBcc: a@b",
            members=[NewMember("a@b.test", ("Reviewer",), display_name="A\r\nB", email="a@b.test\n")],
        )
    found = [fault.pointer for fault in refusal.value.errors]
    assert found == ["/name", "/members/0/displayName", "/members/0/email"]


def test_points_at_every_duplicate_and_every_fault(w):
    with pytest.raises(InvalidInput) as refusal:
        onboard(
            w.tenant_admin,
            slug="No Slug",
            name=" ",
            environments=[NewEnvironment("live"), NewEnvironment("live"), NewEnvironment("Bad")],
            members=[
                NewMember("ann@example.org", ("Reviewer",)),
                NewMember("ann@example.org", ("Requester",)),
                NewMember("bob@example.org", ("King",), ("gold",)),
                NewMember("eve@example.org", ()),
                NewMember("joe@example.org", ("Observer", "PlatformAdmin")),
            ],
        )
    assert [fault.pointer for fault in refusal.value.errors] == [
        "/slug",
        "/name",
        "/environments/2/slug",
        "/environments/1/slug",
        "/members/2/roles/0",
        "/members/2/grants/0",
        "/members/3/roles",
        "/members/4/roles/1",
        "/members/1/subject",
    ]


def test_refuses_a_project_of_the_same_name_and_leaves_nothing(w):
    before = evidence.counts(w.tenant_admin)
    with pytest.raises(ProjectExists) as refusal:
        onboard(w.tenant_admin, slug="main")
    assert [fault.pointer for fault in refusal.value.errors] == ["/slug"]
    assert evidence.counts(w.tenant_admin) == before


def test_leaves_nothing_when_a_late_member_is_refused(w):
    before = evidence.counts(w.tenant_admin)
    with pytest.raises(InvalidInput) as refusal:
        onboard(
            w.tenant_admin,
            members=[NewMember("ann@example.org", ("Reviewer",)), NewMember("service:x:y", ("Requester",))],
        )
    assert [fault.pointer for fault in refusal.value.errors] == ["/members/1/subject"]
    assert evidence.counts(w.tenant_admin) == before
    with reading(w.tenant_admin):
        assert not Project.objects.filter(slug="second").exists()
        assert not Membership.objects.filter(subject="ann@example.org").exists()


def test_refuses_a_tenant_that_was_never_onboarded(tenant_id):
    with pytest.raises(NotFound):
        onboard(system(tenant_id, "test"))


def test_refuses_who_administers_only_a_project_and_audits_the_attempt(w):
    with pytest.raises(RoleOutOfReach):
        onboard(w.workspace_admin)
    [entry] = evidence.audits(w.workspace_admin, "OnboardProject")[-1:]
    assert (entry.outcome, entry.person) == ("refused", w.workspace_admin.actor.person)


@pytest.mark.parametrize(
    "member", ["requester", "reviewer", "operator", "finance", "auditor", "observer", "service"]
)
def test_refuses_every_role_but_an_admin(w, member):
    with pytest.raises(InsufficientRole):
        onboard(getattr(w, member))


def test_refuses_a_token_without_the_scope(w):
    with pytest.raises(InsufficientScope):
        onboard(ctx(w.tenant_admin, scopes=["factory.projects.read"]))


def test_a_token_that_gave_up_the_role_does_not_onboard(w):
    narrowed = replace(w.tenant_admin, actor=replace(w.tenant_admin.actor, roles=frozenset({"Observer"})))
    with pytest.raises(InsufficientRole):
        onboard(narrowed)


def test_happens_once_under_a_key_and_refuses_another_request_under_it(w):
    keyed = onboard_project.under(IdempotencyKey("key-1", "sha256:a"))
    values = {"slug": "second", "name": "The second", "environments": [], "members": []}
    made = keyed(w.tenant_admin, **values)
    before = evidence.counts(w.tenant_admin)
    with pytest.raises(IdempotentReplay) as again:
        keyed(w.tenant_admin, **values)
    assert again.value.result == made
    with pytest.raises(IdempotencyConflict):
        onboard_project.under(IdempotencyKey("key-1", "sha256:b"))(
            w.tenant_admin, **{**values, "slug": "third"}
        )
    assert evidence.counts(w.tenant_admin) == before


def test_tenants_may_use_the_same_names(w):
    other = world(f"{w.tenant}-b")
    assert other.project != w.project
    with reading(other.reviewer):
        assert selectors.project(w.project) is None
        assert selectors.environment(w.project, w.environment) is None
        assert selectors.members(w.project) == selectors.members(None)
        assert Tenant.objects.count() == 1


def test_a_tenant_wide_context_without_a_project_onboards(w):
    wide = context_of(subject_of(w.tenant, "platform_admin"), w.tenant, None)
    assert onboard(wide)["projectId"]
