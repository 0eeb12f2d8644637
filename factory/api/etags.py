"""ETags made from versions, so that an unchanged thing is not sent twice."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from factory.kernel.hashing import digest


def etag_of(*parts: Any) -> str:
    """A weak validator over what the representation depends on."""
    return f'W/"{digest([str(part) for part in parts]).removeprefix("sha256:")[:32]}"'


def with_etag(request: Request, body: Any, *parts: Any) -> Response:
    """The answer with its ETag, or 304 where the caller has it already."""
    tag = etag_of(*parts)
    known = [part.strip() for part in request.headers.get("If-None-Match", "").split(",")]
    if tag in known:
        return Response(status=304, headers={"ETag": tag})
    return Response(body, headers={"ETag": tag})
