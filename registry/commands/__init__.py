"""Everything that changes the registry, one command for each act."""

from registry.commands.aliasing import move_alias
from registry.commands.closing import record_resolution_failure, resolve_closure
from registry.commands.ending import deprecate_release, revoke_release
from registry.commands.reviewing import record_evaluation, request_review
from registry.commands.submitting import submit_release

__all__ = [
    "deprecate_release",
    "move_alias",
    "record_evaluation",
    "record_resolution_failure",
    "request_review",
    "resolve_closure",
    "revoke_release",
    "submit_release",
]
