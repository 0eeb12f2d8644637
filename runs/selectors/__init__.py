"""Reads. To other apps and to the outside they hand frozen values, never rows."""

from runs.selectors.assignments import assignment, assignment_scope, decision_note, offered_assignment
from runs.selectors.runs import (
    find_run,
    graph,
    journal,
    may_see_payloads,
    run_view,
    runs,
    summaries,
)
from runs.selectors.subject_runs import runs_of_subjects
from runs.selectors.templates import newest_of_template, template, templates

__all__ = [
    "assignment",
    "assignment_scope",
    "decision_note",
    "find_run",
    "graph",
    "journal",
    "may_see_payloads",
    "newest_of_template",
    "offered_assignment",
    "run_view",
    "runs",
    "runs_of_subjects",
    "summaries",
    "template",
    "templates",
]
