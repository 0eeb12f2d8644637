"""Who may call what here. A release belongs to the tenant; whoever changes one acts from a project."""

from factory.kernel.permissions import permit
from projects.states import ROLES, Role

AUTHORS = (Role.REQUESTER, Role.OPERATOR, Role.WORKSPACE_ADMIN, Role.PLATFORM_ADMIN)
EVALUATORS = (*AUTHORS, Role.REVIEWER)
KEEPERS = (Role.OPERATOR, Role.WORKSPACE_ADMIN, Role.PLATFORM_ADMIN)


PERMITS = (
    permit("SubmitRelease", scope="registry.write", roles=AUTHORS),
    permit("RecordEvaluation", scope="registry.write", roles=EVALUATORS),
    permit("RequestReview", scope="registry.write", roles=AUTHORS),
    permit("MoveAlias", scope="registry.write", roles=KEEPERS),
    permit("DeprecateRelease", scope="registry.write", roles=KEEPERS),
    permit("RevokeRelease", scope="registry.write", roles=KEEPERS),
    permit("ResolveClosure", scope=None, roles=(), kinds=("system",), level="tenant"),
    permit("RecordResolutionFailure", scope=None, roles=(), kinds=("system",), level="tenant"),
    permit("ListReleases", scope="registry.read", roles=ROLES, level="tenant"),
    permit("ReadRelease", scope="registry.read", roles=ROLES, level="tenant"),
    permit("LoadRelease", scope="registry.read", roles=ROLES, level="tenant"),
    permit("ReadAlias", scope="registry.read", roles=ROLES, level="tenant"),
)
