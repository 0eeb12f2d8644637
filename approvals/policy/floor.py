"""The platform floor: what no document and no role can lower."""

from datetime import timedelta

from approvals.states import ActionClass, Effect

DEFAULT_VALIDITY = timedelta(hours=24)
LONGEST_EXPIRY = timedelta(hours=72)

EVERY_APPROVER = ("Reviewer", "WorkspaceAdmin")
PUBLICATION_APPROVER = ("Reviewer",)


def effect(action_class: ActionClass) -> Effect:
    """Return the weakest answer there may be for a class."""
    return Effect.REQUIRE_APPROVAL if action_class.gated else Effect.ALLOW


def roles(action_class: ActionClass) -> tuple[str, ...]:
    """Return the widest circle that may decide about a class."""
    return PUBLICATION_APPROVER if action_class is ActionClass.PUBLICATION else EVERY_APPROVER
