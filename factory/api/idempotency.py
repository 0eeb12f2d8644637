"""The Idempotency-Key header."""

import re

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from factory.kernel.errors import FieldError, IdempotencyKeyMissing, InvalidInput

VISIBLE = re.compile(r"[!-~]{1,255}")
REPLAYED = "Idempotent-Replayed"
ONCE = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "pattern": "^[!-~]{1,255}$"},
    OpenApiParameter.HEADER,
    description="The same key and body happen once. A repeat shows no secret again.",
)
"""What the API's description says of a call that may carry a key."""


def key_of(request: Request) -> str:
    """The caller's key: 1 to 255 visible ASCII characters."""
    key = request.headers.get("Idempotency-Key")
    if not key:
        raise IdempotencyKeyMissing("Send an Idempotency-Key header, so that a repeat makes no second one.")
    if not VISIBLE.fullmatch(key):
        fault = FieldError("/Idempotency-Key", "1 to 255 visible ASCII characters.")
        raise InvalidInput("The Idempotency-Key is malformed.", errors=[fault])
    return key
