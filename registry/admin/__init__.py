# ruff: noqa: F401  each module registers what it has
"""Pages of assets and their releases, and what the search finds of them."""

from registry.admin import search
from registry.admin.detail import project
from registry.admin.tables import aliases, assets, evaluations, releases
