# ruff: noqa: F401  each module registers what it has
"""Pages of projects, of who is what in them, and of what no longer opens them."""

from projects.admin import project_of
from projects.admin.tables import credentials, delegations, members, projects
