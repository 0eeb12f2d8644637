"""Reading JSON strictly: what two readers could understand differently is refused, with a pointer to it."""

import json
import math
from collections.abc import Collection
from typing import Any, NoReturn

from factory.kernel.errors import FieldError, InvalidInput, TooLarge, Unprocessable
from factory.kernel.hashing import refuse_unkept, token

MAX_BODY = 1024 * 1024
MAX_WORKER_BODY = 2 * 1024 * 1024
MOST_UNREAD = 16 * MAX_BODY
"""Bytes of a refused body that are read and thrown away; with a larger one the connection ends."""
UNREAD_SECONDS = 2.0
"""And how long is waited for them: a silent sender keeps no process from its work."""
MAX_DEPTH = 64
MOST_DIGITS = 40
"""Of a whole number: far beyond any that is taken, and far below what is slow to read."""
MAX_DEPTH_APART = 500
"""What is judged one by one may be deeper, and is refused one by one; no stack meets its end within this."""


class Malformed(InvalidInput):
    code = "malformed-json"
    title = "The body is not the JSON that this accepts"


class UnsupportedMediaType(Unprocessable):
    code = "unsupported-media-type"
    title = "The body is not application/json"
    http_status = 415


def loads(body: bytes, *, apart: Collection[str] = ()) -> Any:
    """The JSON value of a body.

    Refuses duplicate members, NaN and infinities, NUL and lone surrogates in strings, and nesting
    beyond any honest need: they would be stored or hashed differently from what was sent. The texts and the
    numbers of the members `apart` are left to whoever takes their items one by one.
    """
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_members,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_int,
        )
    except UnicodeDecodeError as fault:
        raise Malformed("The body is not UTF-8.") from fault
    except RecursionError as fault:
        raise Malformed("The body is nested too deeply.") from fault
    except json.JSONDecodeError as fault:
        raise Malformed(f"{fault.msg} at line {fault.lineno}, column {fault.colno}.") from fault
    checked = value
    if apart and isinstance(value, dict):
        checked = {name: item for name, item in value.items() if name not in apart}
        if _is_deeper(value, MAX_DEPTH_APART):
            raise Malformed("The body is nested too deeply.")
    _check(checked, "", 0)
    return value


def loads_kept(body: bytes) -> Any:
    """`loads`, and with a pointer to each refuses numbers that would not be kept as they were sent."""
    value = loads(body)
    refuse_unkept(value)
    return value


def check_size(length: int, limit: int) -> None:
    if length > limit:
        raise TooLarge(f"The body is larger than {limit // 1024} KiB.")


def check_media_type(header: str) -> None:
    if header.partition(";")[0].strip().lower() != "application/json":
        raise UnsupportedMediaType("Send the body as application/json.")


def check_encoding(header: str) -> None:
    """Refuse a body that is packed: its size would be known only once it is unpacked."""
    if header.strip().lower() not in ("", "identity"):
        raise UnsupportedMediaType("Send the body as it is, without Content-Encoding: none is unpacked here.")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise Malformed(f"The member {twice[:80]!r} is there twice.")
    return members


def _constant(word: str) -> NoReturn:
    raise Malformed(f"{word} is not JSON.")


def _float(text: str) -> float:
    return float(text)  # infinite where no double holds it, which `_check` and `refuse_unkept` refuse


def _int(text: str) -> int | float:
    if len(text) <= MOST_DIGITS:
        return int(text)
    return -math.inf if text.startswith("-") else math.inf


def _is_deeper(value: Any, most: int) -> bool:
    """Tell whether a value is nested deeper than so many levels, without a stack of as many."""
    level = [value]
    for _ in range(most):
        parts = (part.values() if isinstance(part, dict) else part for part in level)
        level = [item for part in parts for item in part if isinstance(item, dict | list)]
        if not level:
            return False
    return True


def _check(value: Any, pointer: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise Malformed("The body is nested too deeply.")
    if isinstance(value, str):
        _check_text(value, pointer)
    elif isinstance(value, float) and math.isinf(value):
        raise Malformed("A number is out of range.", errors=[FieldError(pointer, "No double holds it.")])
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check(item, f"{pointer}/{index}", depth + 1)
    elif isinstance(value, dict):
        for name, item in value.items():
            _check_text(name, pointer)
            _check(item, f"{pointer}/{token(name)}", depth + 1)


def _check_text(text: str, pointer: str) -> None:
    if "\x00" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise Malformed(
            "A string holds a character that cannot be stored.",
            errors=[FieldError(pointer, "NUL and lone surrogates are not accepted.")],
        )
