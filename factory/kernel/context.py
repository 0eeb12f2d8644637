"""Who is calling, and in which trusted scope.

The scope comes from an authenticated principal alone: never from a body, a query or a header.
"""

from dataclasses import dataclass, field
from typing import Literal, get_args
from uuid import UUID

from factory.kernel.ids import uuid7

ActorKind = Literal["person", "service", "worker", "system"]
Channel = Literal["api", "admin", "cli", "worker", "handler", "job"]
CHANNELS: tuple[str, ...] = get_args(Channel)


@dataclass(frozen=True, slots=True)
class Actor:
    """A principal. `person` is the human who answers for what it does.

    For a person that is their own subject, for a service account its owner's; a worker or a part
    of the product has none. `address` is one that the issuer of their token has verified, and `sign_in` that
    issuer with its `sub` for them.
    """

    subject: str
    kind: ActorKind
    person: str = ""
    roles: frozenset[str] = frozenset()
    grants: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()
    pool: str = ""
    address: str = ""
    sign_in: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """The trusted scope of one call; `project_id` is None for what belongs to the whole tenant."""

    tenant_id: str
    project_id: UUID | None
    actor: Actor
    correlation_id: UUID = field(default_factory=uuid7)
    causation_id: UUID | None = None
    traceparent: str = ""
    channel: Channel = "api"


PLATFORM = "~platform"
"""The scope of what belongs to no tenant. No tenant and no token can be called so: its rows are open to acts
on the host alone, and the wall between tenants keeps them from every one."""


def platform(name: str = "host", *, channel: Channel = "cli") -> Context:
    """Return the context of whoever runs the platform, on its host."""
    return system(PLATFORM, name, channel=channel)


def system(
    tenant_id: str,
    name: str,
    *,
    project_id: UUID | None = None,
    correlation_id: UUID | None = None,
    causation_id: UUID | None = None,
    channel: Channel = "job",
) -> Context:
    """The context of a part of the product that acts by itself, such as a reconciler."""
    return Context(
        tenant_id=tenant_id,
        project_id=project_id,
        actor=Actor(subject=f"system:{name}", kind="system"),
        correlation_id=correlation_id or uuid7(),
        causation_id=causation_id,
        channel=channel,
    )
