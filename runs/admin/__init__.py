# ruff: noqa: F401  each module registers what it has
"""Pages of runs and their templates, of what needs an Operator, and of the workers."""

from runs.admin import project_of, search
from runs.admin.actions import impact
from runs.admin.dashboard import cards, charts
from runs.admin.detail import names, project
from runs.admin.tables import attention, leases, refused_receipts, runs, templates, workers
