"""The inbox and the pages of the policy."""

from approvals.admin import cards, inbox, policies

__all__ = ["cards", "inbox", "policies"]
