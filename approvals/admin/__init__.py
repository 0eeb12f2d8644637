"""The inbox, the pages of the policy, and those of waivers."""

from approvals.admin import cards, charts, finding, inbox, policies, waivers

__all__ = ["cards", "charts", "finding", "inbox", "policies", "waivers"]
