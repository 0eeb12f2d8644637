"""Steps of the tests about people: members, their sign-ins, and rows of an earlier version."""

from uuid import UUID, uuid4

import pytest

from factory.identity.principals import context_of
from factory.identity.tokens import verifier
from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import Forbidden
from factory.kernel.permissions import permit, register_permit
from factory.kernel.recording import record
from projects.commands import add_member, join_identity
from projects.commands.inputs import NewMember
from projects.models import Membership
from tests.support.world import context_of as standing_of
from tests.support.world import subject_of

IDP, OTHER = "https://idp.example", "https://other.example"


def add(w, subject, roles=("Reviewer",), *, project=..., by=None, **other) -> UUID:
    project_id = w.project if project is ... else project
    member = NewMember(subject, roles, **other)
    return UUID(add_member(by or w.system(), project_id=project_id, member=member))


def join(w, subject, person, *, issuer=IDP, by=None) -> UUID:
    made = join_identity(
        by or whole(w), issuer=issuer, subject=subject, person=person, reason="Seen in person"
    )
    return UUID(made)


def whole(w, who="tenant_admin") -> Context:
    return standing_of(subject_of(w.tenant, who), w.tenant, None)


def enter(token: str) -> Context:
    return context_of(verifier().verify(token), channel="api", correlation_id=uuid4())


def refusal(token: str) -> str:
    with pytest.raises(Forbidden) as no:
        enter(token)
    return no.value.detail


def as_before(w, subject, roles=("Reviewer",), email="") -> Membership:
    """A member as a database from before addresses were compared may hold one."""
    at = now()
    row = Membership(
        tenant_id=w.tenant,
        project_id=w.project,
        subject=subject,
        person=subject,
        kind="person",
        email=email,
        roles=list(roles),
        created_at=at,
        updated_at=at,
    )
    _enter_in_books(w.system(), row=row)
    return row


register_permit(permit("TestEarlierMember", scope=None, roles=None, kinds=("system",)))


@command("TestEarlierMember", audited=False)
def _enter_in_books(ctx: Context, *, row: Membership) -> None:
    record(ctx, row, "MemberAdded", detail={"roles": row.roles, "grants": row.grants})
