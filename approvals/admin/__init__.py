"""The inbox, the pages of the policy, and those of waivers."""

from approvals.admin import cards, inbox, policies, waivers

__all__ = ["cards", "inbox", "policies", "waivers"]
