"""Pages of runs and their templates, of what needs an Operator, and of the workers."""

from runs.admin import lists, run, templates, workers

__all__ = ["lists", "run", "templates", "workers"]
