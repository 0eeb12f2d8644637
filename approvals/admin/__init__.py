"""The inbox, the pages of the policy, and those of waivers."""

from approvals.admin import belonging, cards, charts, finding, inbox, policies, waivers

__all__ = ["belonging", "cards", "charts", "finding", "inbox", "policies", "waivers"]
