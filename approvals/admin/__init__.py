"""The inbox, the pages of the policy, and those of waivers."""

from approvals.admin import cards, charts, inbox, policies, waivers

__all__ = ["cards", "charts", "inbox", "policies", "waivers"]
