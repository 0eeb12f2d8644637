"""What a good token opens: only what memberships give at this moment, less what the token narrows away."""

from uuid import uuid4

import pytest

from factory.identity.principals import context_of
from factory.identity.tokens import TokenRefused, verifier
from factory.kernel.clock import now
from factory.kernel.context import Context
from factory.kernel.errors import Forbidden, InsufficientRole, InsufficientScope
from factory.kernel.models import RevokedToken
from factory.kernel.permissions import authorize, permit, register_permit, table
from tests.support.api import token_of, worker_token
from tests.support.world import World, second_world, world

register_permit(permit("TestJudge", scope="approvals.decide", roles={"Reviewer", "WorkspaceAdmin"}))
register_permit(permit("TestTenantWide", scope="projects.read", roles=None, level="tenant"))
register_permit(permit("TestWork", scope="worker", roles=None, kinds=("worker",)))


@pytest.fixture
def home(tenant_id) -> World:
    return world(tenant_id)


def enter(token: str) -> Context:
    return context_of(verifier().verify(token), channel="api", correlation_id=uuid4())


def test_memberships_decide_and_a_tokens_roles_only_narrow(home):
    assert enter(token_of(home.reviewer)).actor.roles == {"Reviewer"}
    assert enter(token_of(home.reviewer, roles=["Observer", "PlatformAdmin"])).actor.roles == frozenset()
    assert enter(token_of(home.reviewer, roles=["Reviewer", "Operator"])).actor.roles == {"Reviewer"}


def test_a_service_account_acts_for_its_owner(home):
    actor = enter(token_of(home.service)).actor
    assert (actor.kind, actor.person) == ("service", home.requester.actor.person)


def test_nothing_tells_an_unknown_project_from_a_foreign_one_or_a_missing_membership(home, tenant_id):
    other = second_world(tenant_id)
    strangers = [
        token_of(home.reviewer, project_id=uuid4()),
        token_of(home.reviewer, project_id=other.project),
        token_of(home.reviewer, tenant_id="t-nowhere"),
        token_of(home.reviewer, tenant_id=other.tenant, project_id=other.project),
    ]
    refusals = set()
    for token in strangers:
        with pytest.raises(Forbidden) as refused:
            enter(token)
        refusals.add((refused.value.code, refused.value.detail))
    assert len(refusals) == 1


def test_a_revoked_token_is_refused_at_once(home):
    for token in (token_of(home.reviewer), worker_token()):
        enter(token)
        told = verifier().verify(token)
        RevokedToken.objects.create(
            jti=told.jti, subject=told.subject, reason="lost", revoked_by="test", revoked_at=now()
        )
        with pytest.raises(TokenRefused):
            enter(token)


def test_kind_then_scope_then_role(home):
    worker = enter(worker_token())
    with pytest.raises(Forbidden) as refused:
        authorize(worker, "TestJudge")
    assert refused.value.code == "forbidden"
    with pytest.raises(Forbidden):
        authorize(home.reviewer, "TestWork")
    authorize(worker, "TestWork")
    with pytest.raises(InsufficientScope):
        authorize(home.ctx("requester", scopes=()), "TestJudge")
    with pytest.raises(InsufficientRole):
        authorize(home.requester, "TestJudge")
    authorize(home.reviewer, "TestJudge")
    authorize(home.system(), "TestJudge")


def test_a_token_without_a_project_reaches_the_tenants_operations_only(home):
    wide = enter(token_of(home.tenant_admin, project_id=None))
    authorize(wide, "TestTenantWide")
    with pytest.raises(Forbidden):
        authorize(wide, "TestJudge")


def test_an_operation_that_nobody_declared_is_closed(home):
    with pytest.raises(Forbidden):
        authorize(home.platform_admin, "TestForgotten")
    assert "TestForgotten" not in table


def test_the_table_knows_only_defined_words():
    for wrong in ({"scope": "runs.everything"}, {"scope": None, "kinds": ("robot",)}):
        with pytest.raises(ValueError, match="TestWrong"):
            permit("TestWrong", roles=None, **wrong)
    with pytest.raises(ValueError, match="twice"):
        register_permit(permit("TestJudge", scope=None, roles=None))
