"""What the REST surface has from its framework, here: problems, bodies, callers, correlation ids."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from uuid import UUID

import structlog
from rest_framework.utils.encoders import JSONEncoder
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from structlog.contextvars import bound_contextvars

from factory.api.correlation import correlation_id, sane_traceparent
from factory.api.problems import CONTENT_TYPE, Problem, problem_of
from factory.api.refusing import counting_refusals
from factory.api.strict_json import (
    MAX_WORKER_BODY,
    MOST_UNREAD,
    UNREAD_SECONDS,
    check_encoding,
    check_media_type,
    check_size,
)
from factory.identity.clients import client_address
from factory.identity.principals import context_of
from factory.identity.tokens import Token, bearer, verifier
from factory.kernel.context import Channel, Context
from factory.kernel.errors import NotFound, Unauthenticated

log = structlog.get_logger("runs.watch")

Endpoint = Callable[[Request], Awaitable[Response]]


def answer(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON as the REST surface writes it."""
    content = json.dumps(body, cls=JSONEncoder, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Response(content, status, headers=headers, media_type="application/json")


def refusal(request: Request, problem: Problem) -> Response:
    body = problem.body(instance=request.url.path, trace_id=str(correlation_of(request)))
    content = json.dumps(body, cls=JSONEncoder)
    return Response(content, problem.status, headers=problem.headers, media_type=CONTENT_TYPE)


def correlation_of(request: Request) -> UUID:
    if not hasattr(request.state, "correlation_id"):
        headers = request.headers
        request.state.correlation_id = correlation_id(headers.get("X-Request-ID"), headers.get("traceparent"))
    identifier: UUID = request.state.correlation_id
    return identifier


def endpoint(handler: Endpoint) -> Endpoint:
    """A handler whose faults become problems, and whose answers carry what every answer has."""

    async def handle(request: Request) -> Response:
        identifier = str(correlation_of(request))
        started = time.perf_counter()
        with bound_contextvars(correlation_id=identifier):
            try:
                response = await handler(request)
            except ClientDisconnect:
                response = Response(status_code=499)
            except Exception as fault:
                response = refusal(request, problem_of(fault))
                await _read_to_the_end(request)
            _log(request, response, time.perf_counter() - started)
        response.headers["X-Request-ID"] = identifier
        response.headers["Cache-Control"] = "no-store"
        return response

    return handle


async def _read_to_the_end(request: Request) -> None:
    """Read what is still sent, or its sender would not see the answer; a larger body ends the connection."""
    left = MOST_UNREAD
    try:
        async with asyncio.timeout(UNREAD_SECONDS):
            async for chunk in request.stream():
                left -= len(chunk)
                if left < 0:
                    return
    except (ClientDisconnect, RuntimeError, TimeoutError):
        return  # the caller has gone, is silent, or everything was read already


def _log(request: Request, response: Response, seconds: float) -> None:
    level = log.warning if response.status_code >= 500 else log.debug
    level(
        "request",
        method=request.method,
        path=request.url.path,
        status=response.status_code,
        ms=round(seconds * 1000, 1),
    )


async def lost(request: Request, fault: Exception) -> Response:
    return refusal(request, problem_of(NotFound("There is no such path.")))


async def wrong_method(request: Request, fault: Exception) -> Response:
    from rest_framework.exceptions import MethodNotAllowed

    return refusal(request, problem_of(MethodNotAllowed(request.method)))


async def read_body(request: Request, limit: int = MAX_WORKER_BODY) -> bytes:
    """The body, refused as soon as it is known to be too large or of another type."""
    check_media_type(request.headers.get("Content-Type", ""))
    check_encoding(request.headers.get("Content-Encoding", ""))
    declared = request.headers.get("Content-Length", "")
    if declared.isdecimal():
        check_size(int(declared), limit)
    parts, length = [], 0
    async for chunk in request.stream():
        length += len(chunk)
        check_size(length, limit)
        parts.append(chunk)
    return b"".join(parts)


def caller(request: Request) -> tuple[Token, Context]:
    """Return who calls; blocking, so it runs in a thread."""
    encoded = bearer(request.headers.get("Authorization"))
    if encoded is None:
        raise Unauthenticated("Send a bearer token in the Authorization header.")
    peer = request.client.host if request.client else ""
    with counting_refusals(client_address(peer, request.headers.get("X-Forwarded-For", ""))):
        token = verifier().verify(encoded)
        channel: Channel = "worker" if token.kind == "worker" else "api"
        traceparent = sane_traceparent(request.headers.get("traceparent"))
        context = context_of(
            token, channel=channel, correlation_id=correlation_of(request), traceparent=traceparent
        )
    return token, context
