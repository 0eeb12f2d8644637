"""What this app refuses, as facts."""

from factory.kernel.errors import Conflict, Forbidden, TransitionRefused, Unprocessable


class ProjectNotActive(Unprocessable):
    """A suspended project accepts no run and has nothing new dispatched."""

    code = "project-not-active"
    title = "The project is not active"


class KillSwitchInProgress(Conflict):
    """Runs of the project are still being cancelled: it cannot go on before each was asked to stop."""

    code = "kill-switch-in-progress"
    title = "The kill switch is still at work"


class TenantExists(Conflict):
    code = "tenant-exists"
    title = "The tenant is there already"


class ProjectExists(Conflict):
    code = "project-exists"
    title = "The tenant has a project of that name"


class EnvironmentExists(Conflict):
    code = "environment-exists"
    title = "The project has an environment of that name"


class MemberExists(Conflict):
    code = "member-exists"
    title = "The subject is a member already"


class AddressTaken(Conflict):
    """One person is one member, however they come in: somebody else has this address here already."""

    code = "address-taken"
    title = "Another member has this address"


class IdentityTaken(Conflict):
    """A sign-in is one person's: this one is a member, or a member's, already."""

    code = "identity-taken"
    title = "The sign-in is somebody's already"


class IdentityEnded(TransitionRefused):
    code = "identity-ended"
    title = "The sign-in is nobody's any more"


class NoSignInLink(Unprocessable):
    """Only who is known by an address can be given a password by a link to it."""

    code = "no-sign-in-link"
    title = "Nobody can be given this sign-in by a link"


class MailOff(Unprocessable):
    """The installation has no mail server: what proves a mailbox cannot be sent."""

    code = "mail-off"
    title = "This installation sends no mail"


class SignInLinkSent(Conflict):
    code = "sign-in-link-sent"
    title = "Sign-in links were sent a moment ago"


class PersonNotMember(Unprocessable):
    """Sign-ins are of people who are members; a machine has none."""

    code = "person-not-a-member"
    title = "The person is not a member"


class MemberRemoved(TransitionRefused):
    code = "member-removed"
    title = "The membership has ended"


class LastAdministrator(Conflict):
    """Without this membership no person would administer the project or tenant, or be a PlatformAdmin."""

    code = "last-administrator"
    title = "Nobody else administers this"


class ServiceAccountExists(Conflict):
    code = "service-account-exists"
    title = "The tenant has a service account of that name"


class RoleOfPeople(Unprocessable):
    """A machine never decides: by this role one decides on what others want, so only people hold it."""

    code = "role-of-people"
    title = "A service account cannot hold this role"


class OwnerNotMember(Unprocessable):
    """A service account needs a person who answers for it, in the same scope."""

    code = "owner-not-a-member"
    title = "The owner is not a member"


class RoleOutOfReach(Forbidden):
    """Nobody gives a role, or a scope, above their own."""

    code = "role-out-of-reach"
    title = "The caller may not give this role"
    audited = True


class DelegationExists(Conflict):
    code = "delegation-exists"
    title = "The role is lent to this member already"


class DelegationEnded(TransitionRefused):
    code = "delegation-ended"
    title = "The delegation has ended"


class DelegationNotDue(Conflict):
    """Its time has not come."""

    code = "delegation-not-due"
    title = "The delegation has not expired"


class RoleNotHeld(Forbidden):
    """Refuse to lend a role that is not one's own: a delegated role cannot be delegated again."""

    code = "role-not-held"
    title = "The caller does not hold this role themselves"
    audited = True


class DelegateNotMember(Unprocessable):
    """Only a person who is a member of the project can be lent a role in it."""

    code = "delegate-not-a-member"
    title = "The delegate is not a member"
