"""Checks of what callers send, each fault with its place. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from factory.kernel.errors import FieldError, InvalidInput
from factory.kernel.hashing import MOST_WHOLE, NUMBER, token

SLUG = re.compile(r"[a-z][a-z0-9-]{0,62}")
SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]{1,40})?")
HASH = re.compile(r"sha256:[0-9a-f]{64}")
SCORE = re.compile(r"[a-z][a-zA-Z0-9_-]{0,62}")
MAX_SCORES = 100


def refuse(faults: Sequence[FieldError], problem: str) -> None:
    """Raise InvalidInput if there is any fault."""
    if faults:
        raise InvalidInput(problem, errors=faults)


def slug_faults(value: str, pointer: str) -> list[FieldError]:
    rule = "Lower-case letters, digits and hyphens, a letter first, at most 63."
    return [] if SLUG.fullmatch(value) else [FieldError(pointer, rule)]


def semver_faults(value: str, pointer: str) -> list[FieldError]:
    rule = "A semantic version such as 1.4.0 or 2.0.0-rc.1."
    return [] if len(value) <= 64 and SEMVER.fullmatch(value) else [FieldError(pointer, rule)]


def hash_faults(value: str, pointer: str) -> list[FieldError]:
    return [] if HASH.fullmatch(value) else [FieldError(pointer, "`sha256:` and 64 lower-case hex digits.")]


def score_faults(scores: Mapping[str, Any], pointer: str = "/scores") -> list[FieldError]:
    if len(scores) > MAX_SCORES:
        return [FieldError(pointer, f"At most {MAX_SCORES} scores.")]
    faults = []
    for name, score in scores.items():
        path = f"{pointer}/{token(name)}"
        if not SCORE.fullmatch(name):
            faults.append(FieldError(path, "Not the name of a score."))
        elif isinstance(score, bool) or not isinstance(score, int | float) or not abs(score) <= MOST_WHOLE:
            faults.append(FieldError(path, f"A score is a number. {NUMBER}"))
    return faults
