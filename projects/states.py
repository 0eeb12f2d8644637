"""The words of this app: states, roles, grants, and the edges between the states."""

from typing import Final

from django.db.models import TextChoices

from factory.kernel.colours import Colour, ColouredChoices
from factory.kernel.lifecycle import Edge, Lifecycle

STATE_CHANGED: Final = "projects.projects.v1.project-state-changed"
SIGN_IN_LINK_REQUESTED: Final = "projects.members.v1.sign-in-link-requested"
DELEGATION_CHANGED: Final = "projects.delegations.v1.delegation-changed"


class ProjectState(ColouredChoices):
    """Only an Active project accepts runs and has work dispatched."""

    ACTIVE = "Active", Colour.GOOD
    SUSPENDED = "Suspended", Colour.WAIT


class MembershipState(ColouredChoices):
    """A membership ends, it is never deleted: who could decide at the time stays readable."""

    ACTIVE = "Active", Colour.GOOD
    REMOVED = "Removed", Colour.PLAIN


class ServiceAccountState(ColouredChoices):
    """A revoked account has no standing anywhere."""

    ACTIVE = "Active", Colour.GOOD
    REVOKED = "Revoked", Colour.BAD


class DelegationState(ColouredChoices):
    """A delegation counts while it is Active and its time has not come; only its end is ever recorded."""

    ACTIVE = "Active", Colour.GOOD
    EXPIRED = "Expired", Colour.BAD
    REVOKED = "Revoked", Colour.BAD


class IdentityState(ColouredChoices):
    """A sign-in is somebody's until that is ended; who it was stays on record."""

    ACTIVE = "Active", Colour.GOOD
    ENDED = "Ended", Colour.PLAIN


class Role(TextChoices):
    """Name what a person or a service account is in a project, or in the whole tenant."""

    REQUESTER = "Requester"
    REVIEWER = "Reviewer"
    OPERATOR = "Operator"
    WORKSPACE_ADMIN = "WorkspaceAdmin", "WorkspaceAdmin"
    PLATFORM_ADMIN = "PlatformAdmin", "PlatformAdmin"
    OBSERVER = "Observer"


class Grant(TextChoices):
    """Name what a membership opens beside its roles."""

    FINANCE = "finance", "finance"
    AUDIT = "audit", "audit"
    PAYLOADS = "payloads", "payloads"


class SubjectKind(TextChoices):
    """Whom a membership is of."""

    PERSON = "person", "person"
    SERVICE = "service", "service account"


ROLES: Final = tuple(Role.values)
GRANTS: Final = tuple(Grant.values)
MACHINE: Final = "^service:"
"""How the subject of a service account begins, as a regular expression; no person's begins so."""
OF_PEOPLE: Final = (Role.REVIEWER.value, Role.WORKSPACE_ADMIN.value, Role.PLATFORM_ADMIN.value)
"""By these one decides on what others want, so people alone hold them: a machine never decides."""
OF_MACHINES: Final = tuple(role for role in ROLES if role not in OF_PEOPLE)
LENDABLE: Final = tuple(role for role in ROLES if role != Role.PLATFORM_ADMIN)
"""A PlatformAdmin answers for the whole tenant, and lends that to nobody."""

PROJECT: Final = Lifecycle(
    "project",
    (
        Edge("", "Active", causes=("Onboarded",), events=(STATE_CHANGED,)),
        Edge("Active", "Suspended", causes=("SuspendRequested", "KillSwitchThrown"), events=(STATE_CHANGED,)),
        Edge("Suspended", "Suspended", causes=("KillSwitchThrown",), events=(STATE_CHANGED,)),
        Edge("Suspended", "Suspended", causes=("KillSwitchFinished",)),
        Edge("Suspended", "Active", causes=("ResumeRequested",), events=(STATE_CHANGED,)),
    ),
)

MEMBERSHIP: Final = Lifecycle(
    "membership",
    (
        Edge("", "Active", causes=("MemberAdded",)),
        Edge("Active", "Active", causes=("MemberChanged", "SignInLinkPrinted")),
        Edge("Active", "Active", causes=("SignInLinkRequested",), events=(SIGN_IN_LINK_REQUESTED,)),
        Edge("Active", "Removed", causes=("MemberRemoved", "OwnerRemoved", "AccountRevoked")),
    ),
)

SERVICE_ACCOUNT: Final = Lifecycle(
    "service-account",
    (
        Edge("", "Active", causes=("ServiceAccountRegistered",)),
        Edge("Active", "Revoked", causes=("OwnerRemoved", "RevocationRequested")),
    ),
)

IDENTITY: Final = Lifecycle(
    "identity",
    (
        Edge("", "Active", causes=("IdentityJoined",)),
        Edge("Active", "Ended", causes=("IdentityEnded", "MemberRemoved")),
    ),
)

DELEGATION: Final = Lifecycle(
    "delegation",
    (
        Edge("", "Active", causes=("RoleLent",), events=(DELEGATION_CHANGED,)),
        Edge("Active", "Expired", causes=("ExpiresAtPassed",), events=(DELEGATION_CHANGED,)),
        Edge(
            "Active",
            "Revoked",
            causes=("RevokeRequested", "MemberRemoved", "RoleWithdrawn", "ProjectClosing"),
            events=(DELEGATION_CHANGED,),
        ),
    ),
)
