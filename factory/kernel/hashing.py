"""One canonical form and one hash: RFC 8785 (JCS) and SHA-256, written as `sha256:<hex>`.

What has a hash comes back from PostgreSQL with it: `canonical` refuses everything that would not.
"""

import hashlib
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import rfc8785

from factory.kernel.errors import FieldError, InvalidInput, ValueNotKept

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
MOST_WHOLE = 2**53 - 1
"""Beyond it jsonb writes a float with all its digits, as an integer that RFC 8785 does not know."""
NUMBER = "A number lies between -(2^53-1) and 2^53-1; send a larger one as text."
TEXT = "NUL and lone surrogates are not accepted."
MOST_FAULTS = 20
MAX_DEPTH = 256


def canonical(value: Any, at: str = "") -> bytes:
    """Return the canonical JSON bytes of a value, which stands at the JSON Pointer `at` of what was sent.

    Raises `ValueNotKept` with a pointer to each number and text that PostgreSQL would not give back as it
    is, and `InvalidInput` for what is no JSON at all.
    """
    refuse_unkept(value, at)
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError) as fault:
        raise InvalidInput(f"The value has no canonical JSON form: {fault}") from fault


def refuse_unkept(value: Any, at: str = "") -> None:
    """Refuse a value that jsonb would give back otherwise, or not at all; see `canonical`."""
    if _is_kept(value, 0):
        return
    faults = list(islice(_unkept(value, at, 0), MOST_FAULTS))
    where = f" at {faults[0].pointer}" if faults and faults[0].pointer else ""
    if faults:
        raise ValueNotKept(f"A value{where} cannot be kept as it is. {faults[0].detail}", errors=faults)
    raise InvalidInput("The value has no canonical JSON form: it is nested too deeply.")


def _is_kept(value: Any, depth: int) -> bool:
    """Tell whether all of it is kept: the common answer, found without building a pointer."""
    if isinstance(value, str):
        return not UNSTORABLE.search(value)
    if isinstance(value, int | float):
        return -MOST_WHOLE <= value <= MOST_WHOLE
    if isinstance(value, dict):
        return depth < MAX_DEPTH and all(
            _is_kept(name, depth) and _is_kept(each, depth + 1) for name, each in value.items()
        )
    if isinstance(value, list | tuple):
        return depth < MAX_DEPTH and all(_is_kept(each, depth + 1) for each in value)
    return True


def _unkept(value: Any, at: str, depth: int) -> Iterator[FieldError]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, dict):
        for name, each in value.items():
            if isinstance(name, str) and UNSTORABLE.search(name):
                yield FieldError(at, f"The name of a member: {TEXT}")
            else:
                yield from _unkept(each, f"{at}/{token(str(name))}", depth + 1)
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from _unkept(each, f"{at}/{index}", depth + 1)
    elif not _is_kept(value, depth):
        yield FieldError(at, TEXT if isinstance(value, str) else NUMBER)


def token(member: str) -> str:
    """Return a member's name as one reference token of a JSON Pointer."""
    return member.replace("~", "~0").replace("/", "~1")


def storable(text: str, most: int | None = None) -> str:
    """Text as PostgreSQL can keep it, for words that must be kept although nobody checked them."""
    clean = UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    return clean if most is None or len(clean) <= most else clean[: most - 1] + "…"


def digest_bytes(content: bytes) -> str:
    """The hash of bytes as they are."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def digest(value: Any, at: str = "") -> str:
    """Return the hash of a JSON value, in whatever order its members are; refuses what `canonical` does."""
    return digest_bytes(canonical(value, at))
