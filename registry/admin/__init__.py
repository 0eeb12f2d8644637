"""Pages of assets and their releases, and what the search finds of them."""

from registry.admin import assets, finding, pages, project, releases

__all__ = ["assets", "finding", "pages", "project", "releases"]
