"""Who may read the evidence, and who may change how the platform works."""

from factory.identity.permissions import permit

permit("BringUpToJournal", scope=None, roles=(), kinds=("system",))
permit("RecordFindings", scope=None, roles=(), kinds=("system",))
permit("ReadAudit", scope="audit.read", roles=None, level="tenant")
permit(
    "ReadSettings", scope="audit.read", roles=("PlatformAdmin", "WorkspaceAdmin", "Operator"), level="tenant"
)
permit("ChangeSetting", scope="projects.write", roles=("PlatformAdmin",), level="tenant")
