"""One canonical form and one hash: RFC 8785 (JCS) and SHA-256, written as `sha256:<hex>`."""

import hashlib
from typing import Any

import rfc8785

from factory.errors import InvalidInput


def canonical(value: Any) -> bytes:
    """The canonical JSON bytes of a value.

    Raises `InvalidInput` for what JSON cannot carry without loss: NaN, infinities, integers
    beyond 2**53, lone surrogates.
    """
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError) as fault:
        raise InvalidInput(f"The value has no canonical JSON form: {fault}") from fault


def digest_bytes(content: bytes) -> str:
    """The hash of bytes as they are."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def digest(value: Any) -> str:
    """The hash of a JSON value, whatever the order of its members."""
    return digest_bytes(canonical(value))
