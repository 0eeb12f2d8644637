"""Pages of money, and what of it stands on the first page."""

from usage.admin import budgets, cards, pages, prices, project

__all__ = ["budgets", "cards", "pages", "prices", "project"]
