"""Pages of money, and what of it stands on the first page."""

from usage.admin import belonging, budgets, cards, months, pages, prices, project

__all__ = ["belonging", "budgets", "cards", "months", "pages", "prices", "project"]
