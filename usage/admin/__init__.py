"""Pages of money, and what of it stands on the first page."""

from usage.admin import cards, pages

__all__ = ["cards", "pages"]
