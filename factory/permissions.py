"""Who may read the evidence."""

from factory.identity.permissions import permit

permit("ReadAudit", scope="audit.read", roles=None, level="tenant")
