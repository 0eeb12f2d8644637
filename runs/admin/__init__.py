"""Pages of runs and their templates, of what needs an Operator, and of the workers."""

from runs.admin import (
    belonging,
    cards,
    charts,
    finding,
    leases,
    lists,
    naming,
    project,
    refused,
    run,
    templates,
    touched,
    workers,
)

__all__ = [
    "belonging",
    "cards",
    "charts",
    "finding",
    "leases",
    "lists",
    "naming",
    "project",
    "refused",
    "run",
    "templates",
    "touched",
    "workers",
]
