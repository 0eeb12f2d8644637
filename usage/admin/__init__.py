# ruff: noqa: F401  each module registers what it has
"""Pages of money, and what of it stands on the first page."""

from usage.admin import project_of
from usage.admin.dashboard import cards, months
from usage.admin.detail import project
from usage.admin.tables import budgets, ledger, prices
