"""To which entry of the side bar a page belongs."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.urls import reverse

Group = dict[str, Any]


def where(groups: Sequence[Group], path: str) -> tuple[Group, dict[str, Any]] | None:
    """The entry, and its group, whose address the page's begins with: of several the longest, so never two.

    An entry that this person is not shown is no way back for them.
    """
    fitting = [(len(way), group, item) for group, item, way in _ways(groups) if _leads(way, path)]
    if not fitting:
        return None
    _, group, item = max(fitting, key=lambda one: one[0])
    return group, item


def _ways(groups: Sequence[Group]) -> Iterator[tuple[Group, dict[str, Any], str]]:
    for group in groups:
        for item in group["items"]:
            if not item["has_permission"]:
                continue
            for way in (str(item["link"]), str(item.get("also", ""))):
                if way:
                    yield group, item, way


def _leads(way: str, path: str) -> bool:
    """The first page's address begins every other, and is only its own."""
    return path == way or (way != reverse("admin:index") and path.startswith(way))
