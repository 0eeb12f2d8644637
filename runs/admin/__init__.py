"""Pages of runs, of what needs an Operator, and of the workers."""

from runs.admin import lists, run, workers

__all__ = ["lists", "run", "workers"]
