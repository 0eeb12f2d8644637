"""One canonical form and one hash: RFC 8785 (JCS) and SHA-256, written as `sha256:<hex>`."""

import hashlib
import re
from typing import Any

import rfc8785

from factory.errors import InvalidInput

NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
"""An escaped NUL in canonical JSON: after an even number of backslashes, or it is only text about one."""
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def canonical(value: Any) -> bytes:
    """The canonical JSON bytes of a value.

    Raises `InvalidInput` for what JSON cannot carry without loss: NaN, infinities, integers
    beyond 2**53, lone surrogates; and for NUL, because PostgreSQL could not keep what was hashed.
    """
    try:
        form = rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError) as fault:
        raise InvalidInput(f"The value has no canonical JSON form: {fault}") from fault
    if NUL.search(form):
        raise InvalidInput("The value holds a NUL character, which cannot be stored.")
    return form


def storable(text: str, most: int | None = None) -> str:
    """Text as PostgreSQL can keep it, for words that must be kept although nobody checked them."""
    clean = UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    return clean if most is None or len(clean) <= most else clean[: most - 1] + "…"


def digest_bytes(content: bytes) -> str:
    """The hash of bytes as they are."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def digest(value: Any) -> str:
    """The hash of a JSON value, whatever the order of its members."""
    return digest_bytes(canonical(value))
