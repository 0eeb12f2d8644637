"""Who may call what here. A person's own ways are theirs alone: no admin reads or changes them."""

from factory.kernel.permissions import permit
from projects.states import ROLES, Role

MINDERS = (Role.OPERATOR, Role.WORKSPACE_ADMIN, Role.PLATFORM_ADMIN)


PERMITS = (
    permit("ReadOwnNotifications", scope="projects.read", roles=ROLES, kinds=("person",), level="tenant"),
    permit("ChangeOwnNotifications", scope="projects.write", roles=ROLES, kinds=("person",), level="tenant"),
    permit("AddChannel", scope="projects.write", roles=ROLES, kinds=("person",), level="tenant"),
    permit("ChangeChannel", scope="projects.write", roles=ROLES, kinds=("person",), level="tenant"),
    permit("RemoveChannel", scope="projects.write", roles=ROLES, kinds=("person",), level="tenant"),
    permit("TestChannel", scope="projects.write", roles=ROLES, kinds=("person",), level="tenant"),
    permit("ListNotifications", scope="audit.read", roles=MINDERS, level="tenant"),
    permit("RetryNotification", scope="runs.write", roles=MINDERS, level="tenant"),
    *(
        permit(operation, scope=None, roles=(), kinds=("system",), level="tenant")
        for operation in (
            "TellOfApproval",
            "TellOfSignIn",
            "TellOfEndingBudget",
            "RemindOfExpiry",
            "ClaimNotification",
            "SettleNotification",
        )
    ),
)
