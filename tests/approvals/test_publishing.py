"""Publishing policy: revisions are numbered, immutable and pinned; a tenant starts with the platform's."""

from typing import Any
from uuid import UUID

import pytest

from approvals import selectors
from approvals.commands import adopt_platform_policy, publish_policy_revision
from approvals.errors import PolicyInvalid, PolicyMissing, PolicyOutOfReach
from approvals.models import PolicyRevision
from approvals.policy.document import platform_default
from approvals.selectors import PolicyView
from factory.kernel.context import Context, system
from factory.kernel.errors import Forbidden, InvalidInput, NotFound
from factory.kernel.hashing import digest
from factory.kernel.tenancy import reading
from projects.commands import add_member, onboard_project
from projects.commands.inputs import NewEnvironment, NewMember
from tests.approvals.test_policy import rule, with_rules
from tests.support.evidence import audits, counts, outbox, violations
from tests.support.world import ctx, second_world, world

pytestmark = pytest.mark.slow


def revisions(house) -> list[str]:
    with reading(house):
        return [row.revision for row in selectors.policy_revisions()]


def published(ctx: Context, **words: Any) -> PolicyView:
    """The new revision."""
    word = publish_policy_revision(ctx, **words)
    with reading(ctx):
        return selectors.policy_named(word)


@pytest.mark.requirement("POL-03")
def test_the_next_number_stands_beside_the_old_ones(asker):
    document = with_rules(rule("external", "deny"))
    view = published(asker.world.workspace_admin, document=document, note="No mail.")
    assert (view.policy_id, view.revision, view.document, view.note) == (
        "default",
        "r2",
        document,
        "No mail.",
    )
    assert view.document_hash == digest(document)
    assert revisions(asker.house) == ["r2", "r1"]
    with reading(asker.house):
        assert selectors.current_policy(asker.house).revision == "r2"
        assert selectors.policy_revision(asker.policy.id) == asker.policy
        assert selectors.policy_named("r1") == asker.policy
        row = PolicyRevision.objects.get(pk=view.id)
    topic, told = outbox(asker.house, row.stream)[-1]
    assert topic == "governance.policies.v1.policy-revision-published"
    assert told == {
        "tenantId": asker.world.tenant,
        "policyId": "default",
        "revision": "r2",
        "documentHash": digest(document),
        "publishedBy": asker.world.workspace_admin.actor.subject,
    }
    assert len([e for e in audits(asker.house, "PublishPolicyRevision") if e.outcome == "done"]) == 1
    assert violations(asker.world.tenant) == []


@pytest.mark.requirement("APR-27")
def test_what_was_asked_keeps_the_rule_of_its_revision(asker):
    before = asker.ask()
    document = with_rules(rule("shared-write", "require-approval", roles=["WorkspaceAdmin"]))
    publish_policy_revision(asker.world.workspace_admin, document=document)
    assert asker.view(before.id).approver_roles == ("Reviewer", "WorkspaceAdmin")
    with reading(asker.house):
        current = selectors.current_policy(asker.house)
    assert asker.again().ask(policy=current).approver_roles == ("WorkspaceAdmin",)


@pytest.mark.requirement("POL-06")
def test_a_faulty_document_publishes_nothing(asker):
    before = counts(asker.house)
    with pytest.raises(PolicyInvalid):
        publish_policy_revision(asker.world.workspace_admin, document=with_rules(rule("production", "allow")))
    with pytest.raises(InvalidInput):
        publish_policy_revision(asker.world.workspace_admin, document=platform_default(), note="x" * 501)
    assert counts(asker.house) == before


@pytest.mark.parametrize(
    "role", ["requester", "reviewer", "operator", "observer", "platform_admin", "service"]
)
def test_a_workspace_admin_publishes_and_nobody_else(asker, role):
    with pytest.raises(Forbidden):
        publish_policy_revision(getattr(asker.world, role), document=platform_default())


def test_publishing_needs_its_scope(asker):
    with pytest.raises(Forbidden):
        publish_policy_revision(ctx(asker.world.workspace_admin, ()), document=platform_default())


def test_doubts_are_published_with_the_revision(tenant_id):
    house = system(tenant_id, "test")
    home = world(tenant_id)
    document = with_rules(rule("external", "require-approval", expiryHours=100))
    view = published(home.workspace_admin, document=document)
    assert view.warnings == ("Rule 1 asks for an expiry of 100 h; requests expire after 72 h.",)
    with reading(house):
        assert selectors.policy_named("r1").warnings == view.warnings


def test_a_gate_that_nobody_could_open_is_found_at_publication(tenant_id):
    home = world(tenant_id)
    onboard_project(home.system(), slug="lonely", name="L", environments=[NewEnvironment("lab")], members=[])
    view = published(home.tenant_admin, document=platform_default())
    assert view.warnings == ("Nobody in lonely could decide about publication: no member is a Reviewer.",)


def test_a_tenant_starts_with_the_platforms_policy_and_keeps_its_own(tenant_id):
    house = world(tenant_id).system()
    with reading(house), pytest.raises(PolicyMissing):
        selectors.current_policy(house)
    assert adopt_platform_policy(house) == "r1"
    assert adopt_platform_policy(house) == "r1"
    assert revisions(house) == ["r1"]
    with pytest.raises(Forbidden):
        adopt_platform_policy(world(f"{tenant_id}-c").workspace_admin)


def test_another_tenants_revision_does_not_exist(asker, tenant_id):
    with reading(second_world(tenant_id).system()):
        with pytest.raises(NotFound):
            selectors.policy_revision(asker.policy.id)
        with pytest.raises(NotFound):
            selectors.policy_named("r1")


@pytest.mark.parametrize("word", ["", "r", "r0", "r2", "rr1", "latest", "r99999999999", "r-1", "r١"])
def test_an_unknown_revision_is_not_found(asker, word):
    with reading(asker.house), pytest.raises(NotFound):
        selectors.policy_named(word)


def test_an_unknown_class_is_never_evaluated(asker):
    with reading(asker.house), pytest.raises(InvalidInput):
        selectors.evaluate(asker.policy, "harmless", None)


def test_what_holds_in_every_project_is_published_by_who_administers_them_all(tenant_id):
    home = world(tenant_id)
    admin, document = home.workspace_admin, platform_default()
    assert published(admin, document=document).revision == "r1"
    other = onboard_project(home.system(), slug="hidden", name="H", environments=[], members=[])
    with pytest.raises(PolicyOutOfReach) as refused:
        publish_policy_revision(admin, document=document)
    assert "hidden" not in str(refused.value), "Of a place that the caller may not know"
    assert published(home.tenant_admin, document=document).revision == "r2"
    joined = NewMember(subject=admin.actor.subject, roles=("WorkspaceAdmin",))
    add_member(system(tenant_id, "test"), project_id=UUID(other["projectId"]), member=joined)
    assert published(admin, document=document).revision == "r3"
