"""Who somebody is in a project. The kernel asks; the app that keeps the memberships answers."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from factory.kernel.context import ActorKind


@dataclass(frozen=True)
class HeldDelegation:
    """A role that somebody else has lent, good until `expires_at`, which itself is too late."""

    delegation_id: UUID
    role: str
    delegator: str
    expires_at: datetime


@dataclass(frozen=True)
class EffectiveGrants:
    """Hold what memberships and delegations give a subject, at this moment.

    `person` is the human who answers for the subject: two subjects of one person are one person
    wherever duties are separated, and a service account's person is its owner. `roles` are all of them;
    `delegations` are of those roles that the subject does not hold itself. A machine never decides: roles of
    people that its memberships still name are `withheld`, and count for nothing.
    """

    person: str
    roles: frozenset[str]
    grants: frozenset[str] = frozenset()
    delegations: tuple[HeldDelegation, ...] = ()
    machine: bool = False
    withheld: frozenset[str] = frozenset()

    @property
    def kind(self) -> ActorKind:
        """Return what acts by it, whatever the token or session says that it is."""
        return "service" if self.machine else "person"

    @property
    def own_roles(self) -> frozenset[str]:
        """Return what memberships alone give."""
        return self.roles - {loan.role for loan in self.delegations}


@dataclass(frozen=True, slots=True)
class SignIn:
    """Say who a trusted issuer says that somebody is.

    `address` is one that the issuer has verified, and is believed about. `ours` says that it is we who
    gave the subject, `alone` that no other issuer speaks for the tenant, so that it names whom an
    administrator made a member by it.
    Without any of them, only an administrator's act has made it somebody's.
    """

    issuer: str
    subject: str
    address: str = ""
    ours: bool = False
    alone: bool = False


@dataclass(frozen=True)
class Scope:
    """Somewhere that a person may work: a project, or the tenant as a whole (`project_id` None)."""

    tenant_id: str
    tenant_name: str
    project_id: UUID | None
    project_name: str
    project_slug: str = ""

    @property
    def key(self) -> str:
        """The place in one word, for a form and a session."""
        return f"{self.tenant_id}/{self.project_id or ''}"


class Directory(Protocol):
    def subjects_of(self, sign_in: SignIn) -> frozenset[str]:
        """Return the subjects of the members whom a sign-in may be; one, or it opens nothing.

        Called inside a reading transaction of the tenant, whose identities alone are asked. The subject of
        our own issuer is answered as it is, whether or not it is a member's.
        """
        ...

    def grants_of(self, subject: str, tenant_id: str, project_id: UUID | None) -> EffectiveGrants | None:
        """The standing of `subject`, or None where it has none.

        Called inside a reading transaction of that tenant, so the implementation only queries. With no
        project it answers for the tenant as a whole. None must not tell an unknown tenant or project from
        one where the subject is merely no member.
        """
        ...

    def places_of(self, subject: str) -> list[Scope]:
        """Every place of a person, in whatever tenant; called outside any tenant's scope."""
        ...


_registered: list[Directory] = []


def register_directory(implementation: Directory) -> None:
    """Called once, when the app that keeps memberships is ready."""
    _registered[:] = [implementation]


def directory() -> Directory:
    if not _registered:
        raise RuntimeError("No directory is registered: the app that keeps memberships is not installed.")
    return _registered[0]
