"""Who may call what here. Who may decide is judged by the command, under its locks."""

from factory.kernel.permissions import permit
from projects.states import ROLES, Role

ENDS_WAIVERS = (Role.REVIEWER, Role.OPERATOR, Role.WORKSPACE_ADMIN, Role.PLATFORM_ADMIN)
"""Ending one is the more available act: whoever watches over the project may."""


PERMITS = (
    permit("DecideApproval", scope="approvals.decide", roles=None, level="tenant"),
    permit("DecideApprovals", scope="approvals.decide", roles=None, level="tenant"),
    permit("ExpireApproval", scope=None, roles=(), kinds=("system",), level="tenant"),
    permit("ListApprovals", scope="approvals.read", roles=ROLES, level="tenant"),
    permit("ReadApproval", scope="approvals.read", roles=ROLES, level="tenant"),
    permit("ListWaivers", scope="approvals.read", roles=ROLES, level="tenant"),
    permit("ReadWaiver", scope="approvals.read", roles=ROLES, level="tenant"),
    permit("RevokeWaiver", scope="approvals.decide", roles=ENDS_WAIVERS, level="tenant"),
    permit("ExpireWaiver", scope=None, roles=(), kinds=("system",), level="tenant"),
    permit("PublishPolicyRevision", scope="projects.write", roles=(Role.WORKSPACE_ADMIN,), level="tenant"),
    permit("AdoptPlatformPolicy", scope=None, roles=(), kinds=("system",), level="tenant"),
    permit("ListPolicyRevisions", scope="projects.read", roles=ROLES, level="tenant"),
    permit("ReadPolicyRevision", scope="projects.read", roles=ROLES, level="tenant"),
    permit("EvaluatePolicy", scope="projects.read", roles=ROLES, level="tenant"),
)
