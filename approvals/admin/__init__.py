# ruff: noqa: F401  each module registers what it has
"""The inbox, the pages of the policy, and those of waivers."""

from approvals.admin import inbox, project_of, search
from approvals.admin.dashboard import cards, charts
from approvals.admin.tables import policies, waivers
