"""Who may call what here.

A WorkspaceAdmin of a project manages that project; one of the whole tenant also onboards. Whether
the caller's roles reach the whole tenant is judged by the command, under its locks.
"""

from factory.kernel.permissions import permit
from projects.states import ROLES, Role

ADMINS = (Role.WORKSPACE_ADMIN, Role.PLATFORM_ADMIN)


PERMITS = (
    permit("OnboardTenant", scope=None, roles=(), kinds=("system",), level="tenant"),
    permit("OnboardProject", scope="projects.write", roles=ADMINS, level="tenant"),
    permit("SuspendProject", scope="projects.write", roles=ADMINS, level="tenant"),
    permit("KillProject", scope="projects.write", roles=ADMINS, level="tenant"),
    permit("ResumeProject", scope="projects.write", roles=ADMINS, level="tenant"),
    permit("AddEnvironment", scope="projects.write", roles=ADMINS, level="tenant"),
    permit("AddMember", scope="projects.write", roles=ADMINS, level="tenant"),
    permit("ChangeMember", scope="projects.write", roles=ADMINS, level="tenant"),
    permit("RemoveMember", scope="projects.write", roles=ADMINS, level="tenant"),
    permit("SendSignInLink", scope="projects.write", roles=ADMINS, level="tenant"),
    permit("PrintSignInLink", scope=None, roles=(), kinds=("system",), level="tenant"),
    permit("RegisterServiceAccount", scope="projects.write", roles=ADMINS, level="tenant"),
    permit("RevokeServiceAccount", scope="projects.write", roles=ADMINS, level="tenant"),
    permit("RevokeToken", scope="projects.write", roles=ADMINS, level="tenant"),
    permit("RevokeCredential", scope="projects.write", roles=ADMINS, level="tenant"),
    permit("JoinIdentity", scope="projects.write", roles=ADMINS, level="tenant"),
    permit("EndIdentity", scope="projects.write", roles=ADMINS, level="tenant"),
    permit("ListIdentities", scope="projects.read", roles=ADMINS, level="tenant"),
    permit("ListRevocations", scope="projects.read", roles=ADMINS, level="tenant"),
    permit("LendRole", scope="projects.write", roles=ROLES, kinds=("person",)),
    permit("RevokeDelegation", scope="projects.write", roles=ROLES, level="tenant"),
    permit("ExpireDelegation", scope=None, roles=(), kinds=("system",), level="tenant"),
    permit("ListDelegations", scope="projects.read", roles=ROLES, level="tenant"),
    permit("ListProjects", scope="projects.read", roles=ROLES, level="tenant"),
    permit("ReadProject", scope="projects.read", roles=ROLES, level="tenant"),
    permit("ListEnvironments", scope="projects.read", roles=ROLES, level="tenant"),
    permit("ListMembers", scope="projects.read", roles=ROLES, level="tenant"),
    permit("ListServiceAccounts", scope="projects.read", roles=ADMINS, level="tenant"),
)
