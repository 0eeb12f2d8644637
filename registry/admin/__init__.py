"""Pages of releases, and what the search finds of them."""

from registry.admin import finding, pages

__all__ = ["finding", "pages"]
