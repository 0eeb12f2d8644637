"""The inbox and the pages of the policy."""

from approvals.admin import inbox, policies

__all__ = ["inbox", "policies"]
