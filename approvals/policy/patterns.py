"""Patterns over environment slugs: `*` stands for any characters, `?` for one."""

from fnmatch import fnmatchcase
from functools import cache

ANYWHERE = "*"


def where(pattern: str) -> str:
    """Return the environments of a pattern in words."""
    return "everywhere" if pattern == ANYWHERE else f"in {pattern}"


def matches(pattern: str, environment: str | None) -> bool:
    """Return whether a rule for this pattern holds; no environment is covered by `*` alone."""
    if environment is None:
        return pattern == ANYWHERE
    return fnmatchcase(environment, pattern)


@cache
def overlap(one: str, other: str) -> bool:
    """Return whether some slug matches both patterns."""
    if not one or not other:
        return set(one + other) <= {"*"}
    if one[0] == "*":
        return overlap(one[1:], other) or overlap(one, other[1:])
    if other[0] == "*":
        return overlap(other, one)
    return (one[0] == other[0] or "?" in (one[0], other[0])) and overlap(one[1:], other[1:])
