"""The Idempotency-Key header."""

import re

from rest_framework.request import Request

from factory.errors import FieldError, IdempotencyKeyMissing, InvalidInput

VISIBLE = re.compile(r"[!-~]{1,255}")
REPLAYED = "Idempotent-Replayed"


def key_of(request: Request) -> str:
    """The caller's key: 1 to 255 visible ASCII characters."""
    key = request.headers.get("Idempotency-Key")
    if not key:
        raise IdempotencyKeyMissing("Send an Idempotency-Key header, so that a repeat makes no second one.")
    if not VISIBLE.fullmatch(key):
        fault = FieldError("/Idempotency-Key", "1 to 255 visible ASCII characters.")
        raise InvalidInput("The Idempotency-Key is malformed.", errors=[fault])
    return key
