"""Reads. To other apps and to the outside they hand frozen values, never rows."""

from runs.selectors.assignments import assignment, assignment_scope, decision_note, offered_assignment

__all__ = ["assignment", "assignment_scope", "decision_note", "offered_assignment"]
