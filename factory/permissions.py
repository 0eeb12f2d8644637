"""Who may read the evidence, change how the platform works, and say where events go."""

from factory.kernel.permissions import permit

ADMINS = ("WorkspaceAdmin", "PlatformAdmin")
MINDERS = ("Operator", "PlatformAdmin")


PERMITS = (
    permit("BringUpToJournal", scope=None, roles=(), kinds=("system",)),
    permit("RecordFindings", scope=None, roles=(), kinds=("system",)),
    permit("ReadAudit", scope="audit.read", roles=None, level="tenant"),
    permit(
        "ReadSettings",
        scope="audit.read",
        roles=("PlatformAdmin", "WorkspaceAdmin", "Operator"),
        level="tenant",
    ),
    permit("ChangeSetting", scope=None, roles=(), kinds=("system",), level="tenant"),
    permit("ListWebhooks", scope="projects.read", roles=ADMINS, level="tenant"),
    permit("CreateWebhook", scope="projects.write", roles=ADMINS, level="tenant"),
    permit("ChangeWebhook", scope="projects.write", roles=ADMINS, level="tenant"),
    permit("DisableWebhook", scope="projects.write", roles=ADMINS, level="tenant"),
    permit("EnableWebhook", scope="projects.write", roles=ADMINS, level="tenant"),
    permit("RotateWebhookSecret", scope="projects.write", roles=ADMINS, level="tenant"),
    permit("PingWebhook", scope="projects.write", roles=ADMINS, level="tenant"),
    permit("CloseGoneWebhook", scope=None, roles=(), kinds=("system",), level="tenant"),
    permit("ListConsumers", scope="audit.read", roles=("Operator", *ADMINS), level="tenant"),
    permit("RetryDelivery", scope="runs.write", roles=MINDERS, level="tenant"),
    permit("SkipDelivery", scope="runs.write", roles=MINDERS, level="tenant"),
)
