# ruff: noqa: F401  each module registers what it has
"""Pages of notifications."""

from notifications.admin import dashboard, project_of, tables
