"""A small world for a test: one tenant, one project, and somebody in each role.

Everything is made by the real commands, so a test starts from what an operator could have done.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from uuid import UUID

from factory.kernel.context import Actor, Channel, Context, system
from factory.kernel.permissions import SCOPES
from factory.kernel.tenancy import reading
from projects.commands import add_member, onboard_project, onboard_tenant, register_service_account
from projects.commands.inputs import NewEnvironment, NewMember
from projects.selectors.directory import Memberships
from tests.support.api import token_of

ALL = SCOPES - {"factory.worker"}
"""Every scope that a person's token can carry."""

PEOPLE: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "requester": (("Requester",), ("payloads",)),
    "reviewer": (("Reviewer",), ()),
    "reviewer2": (("Reviewer",), ()),
    "operator": (("Operator",), ("payloads",)),
    "workspace_admin": (("WorkspaceAdmin",), ()),
    "finance": (("Observer",), ("finance",)),
    "auditor": (("Observer",), ("audit",)),
    "observer": (("Observer",), ()),
}
TENANT_WIDE = {
    "tenant_admin": (("WorkspaceAdmin",), ()),
    "platform_admin": (("PlatformAdmin",), ()),
}
ENVIRONMENTS = ("staging", "production")


@dataclass(frozen=True)
class World:
    """The tenant, its project, and a context for each person and the service account."""

    tenant: str
    project: UUID
    environment: UUID
    environments: dict[str, UUID]
    memberships: dict[str, UUID]
    requester: Context
    reviewer: Context
    reviewer2: Context
    operator: Context
    workspace_admin: Context
    finance: Context
    auditor: Context
    observer: Context
    tenant_admin: Context
    platform_admin: Context
    service: Context

    def system(self, name: str = "test") -> Context:
        """A part of the house, acting in the project."""
        return system(self.tenant, name, project_id=self.project)

    def ctx(self, member: str, scopes: Iterable[str] = ALL, channel: Channel = "api") -> Context:
        """A member's context with other scopes, or on another channel."""
        return ctx(getattr(self, member), scopes, channel)

    def token(self, member: str, scopes: Iterable[str] = ALL) -> str:
        """A bearer token of one of the people, or of the service account."""
        return token_of(self.ctx(member, scopes))


def subject_of(tenant_id: str, member: str) -> str:
    """The subject of one of the people: unique to the tenant, so that no test meets another's."""
    return f"{member.replace('_', '-')}@{tenant_id}.test"


def ctx(member: Context, scopes: Iterable[str] = ALL, channel: Channel = "api") -> Context:
    """The same principal and scope with other token scopes, or on another channel."""
    return replace(member, channel=channel, actor=replace(member.actor, scopes=frozenset(scopes)))


def context_of(
    subject: str,
    tenant_id: str,
    project_id: UUID | None,
    *,
    scopes: Iterable[str] = ALL,
    channel: Channel = "api",
) -> Context:
    """The context that a valid token or session of `subject` would give, from the memberships as they are."""
    scope = system(tenant_id, "test", project_id=project_id)
    with reading(scope):
        standing = Memberships().grants_of(subject, tenant_id, project_id)
    service = subject.startswith("service:")
    actor = Actor(
        subject=subject,
        kind="service" if service else "person",
        person=standing.person if standing else subject,
        roles=standing.roles if standing else frozenset(),
        grants=standing.grants if standing else frozenset(),
        scopes=frozenset(scopes),
    )
    return replace(scope, actor=actor, channel=channel)


def world(tenant_id: str, *, project: str = "main") -> World:
    """Onboard the tenant and its project, and answer with a context for everybody."""
    house = system(tenant_id, "test")
    onboard_tenant(house, name=f"Tenant {tenant_id}")
    made = onboard_project(
        house,
        slug=project,
        name="The main project",
        environments=[NewEnvironment(slug) for slug in ENVIRONMENTS],
        members=[_new(tenant_id, name, PEOPLE) for name in PEOPLE],
    )
    for name in TENANT_WIDE:
        add_member(house, project_id=None, member=_new(tenant_id, name, TENANT_WIDE))
    project_id = UUID(made["projectId"])
    service = register_service_account(
        house,
        project_id=project_id,
        slug="robot",
        owner=subject_of(tenant_id, "requester"),
        roles=("Requester",),
        grants=("payloads",),
    )
    scope = system(tenant_id, "test", project_id=project_id)
    people = {name: _standing(scope, name, PEOPLE) for name in PEOPLE}
    wide = {name: _standing(scope, name, TENANT_WIDE) for name in TENANT_WIDE}
    return World(
        tenant=tenant_id,
        project=project_id,
        environment=UUID(made["environments"]["staging"]),
        environments={slug: UUID(key) for slug, key in made["environments"].items()},
        memberships={name: UUID(made["members"][subject_of(tenant_id, name)]) for name in PEOPLE},
        service=context_of(service, tenant_id, project_id),
        **people,
        **wide,
    )


def second_world(tenant_id: str) -> World:
    """Another tenant with the same people in the same roles, to stand on the other side of the wall."""
    return world(f"{tenant_id}-b")


def _standing(
    scope: Context, name: str, standing: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
) -> Context:
    """What `context_of` reads from the memberships that were just made; tests/projects show that it does."""
    subject, (roles, grants) = subject_of(scope.tenant_id, name), standing[name]
    actor = Actor(
        subject=subject,
        kind="person",
        person=subject,
        roles=frozenset(roles),
        grants=frozenset(grants),
        scopes=frozenset(ALL),
    )
    return replace(scope, actor=actor, channel="api")


def _new(
    tenant_id: str, name: str, standing: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
) -> NewMember:
    roles, grants = standing[name]
    subject = subject_of(tenant_id, name)
    return NewMember(subject, roles, grants, email=subject, display_name=name.replace("_", " ").title())
