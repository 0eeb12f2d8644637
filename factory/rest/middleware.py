"""What every answer has: a correlation id, and under /factory/ a word against caching and problem+json."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import structlog
from django.http import HttpRequest, HttpResponse, JsonResponse
from structlog.contextvars import bound_contextvars

from factory.errors import InvalidInput
from factory.rest.correlation import correlation_of
from factory.rest.json import MOST_UNREAD, UNREAD_SECONDS
from factory.rest.problems import CONTENT_TYPE, Problem, problem_of

API, CONSOLE = "/factory/", "/admin/"
CHUNK = 64 * 1024

log = structlog.get_logger("factory.rest")


class EdgeMiddleware:
    """Sets the request's correlation id, names it in the log's context and in the answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        identifier = str(correlation_of(request))
        started = time.perf_counter()
        with bound_contextvars(correlation_id=identifier):
            response = _refused(request) or self.get_response(request)
            _read_to_the_end(request)
            _log(request, response, time.perf_counter() - started)
        response["X-Request-ID"] = identifier
        if request.path.startswith(API):
            response.setdefault("Cache-Control", "no-store")
        return response

    def process_exception(self, request: HttpRequest, fault: Exception) -> HttpResponse | None:
        """A fault outside a REST view but under its paths is still told as a problem."""
        return problem_response(request, problem_of(fault)) if request.path.startswith(API) else None


def _refused(request: HttpRequest) -> HttpResponse | None:
    """NUL can be stored nowhere and names nothing: refused here, so that no query ever meets one.

    The console refuses it by itself, with a page, once it knows for whom.
    """
    if not holds_nul(request) or request.path.startswith(CONSOLE):
        return None
    problem = problem_of(InvalidInput("The address holds a NUL character."))
    if request.path.startswith(API):
        return problem_response(request, problem)
    return HttpResponse(problem.detail, status=problem.status, content_type="text/plain")


def holds_nul(request: HttpRequest) -> bool:
    """Whether a NUL character is in the address."""
    return "\x00" in request.path or "%00" in request.META.get("QUERY_STRING", "")


def _read_to_the_end(request: HttpRequest) -> None:
    """Take in what was refused unread: who is still sending would never see the answer.

    Bounded in bytes and in time, since nobody had to sign in to get here. Of a sender that is slower, or
    that announces more, nothing is read on: the connection ends with the answer.
    """
    sock = request.META.get("gunicorn.socket")
    left, end = MOST_UNREAD, time.monotonic() + UNREAD_SECONDS
    if _announced(request) <= MOST_UNREAD:
        with _no_longer_than(sock, UNREAD_SECONDS):
            try:
                while left > 0 and time.monotonic() < end:
                    chunk = request.read(min(left, CHUNK))
                    if not chunk:
                        return
                    left -= len(chunk)
            except OSError:
                pass  # the caller has gone, or is silent
    if sock is not None:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RD)


def _announced(request: HttpRequest) -> int:
    """The bytes of the body as the caller said; Django takes what is no number as none."""
    told = str(request.META.get("CONTENT_LENGTH") or "0")
    return int(told) if told.isdigit() else 0


@contextmanager
def _no_longer_than(sock: socket.socket | None, seconds: float) -> Iterator[None]:
    """The server's threads wait for a caller's bytes without an end of their own."""
    if sock is None:
        yield
        return
    before = sock.gettimeout()
    sock.settimeout(seconds)
    try:
        yield
    finally:
        with suppress(OSError):
            sock.settimeout(before)


def _log(request: HttpRequest, response: HttpResponse, seconds: float) -> None:
    """One line a request: its path, but neither its query nor its body."""
    level = log.warning if response.status_code >= 500 else log.info
    level(
        "request",
        method=request.method,
        path=request.path,
        status=response.status_code,
        ms=round(seconds * 1000, 1),
    )


def problem_response(request: HttpRequest, problem: Problem) -> HttpResponse:
    body = problem.body(instance=request.path, trace_id=str(correlation_of(request)))
    return JsonResponse(body, status=problem.status, content_type=CONTENT_TYPE, headers=dict(problem.headers))
