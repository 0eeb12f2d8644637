"""What an act below would touch above: how many runs a revocation or a kill switch reaches.

An app cannot ask the apps above it. They say here how to count, and whoever shows an act before it is done
asks here: a page, or a body of the API.
"""

from collections.abc import Callable
from typing import Literal
from uuid import UUID

Kind = Literal["project", "release"]
Count = Callable[[UUID], dict[str, int]]

_counts: dict[str, list[Count]] = {}


def register_impact(kind: Kind, count: Count) -> None:
    """Register a count of what rests on a project or a release; called inside a reading transaction."""
    _counts.setdefault(kind, []).append(count)


def concerns(kind: Kind, about: UUID) -> dict[str, int]:
    """Return what rests on it now, by the names that the API uses, such as `openRuns`."""
    found: dict[str, int] = {}
    for count in _counts.get(kind, ()):
        found |= count(about)
    return found
