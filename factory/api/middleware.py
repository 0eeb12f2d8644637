"""What every answer has: a correlation id, and under /factory/ a word against caching and problem+json."""

import time
from collections.abc import Callable

import structlog
from django.http import HttpRequest, HttpResponse, JsonResponse
from structlog.contextvars import bound_contextvars

from factory.api.correlation import correlation_of
from factory.api.problems import CONTENT_TYPE, Problem, problem_of
from factory.kernel.errors import InvalidInput
from factory.kernel.text import without_links

API, CONSOLE = "/factory/", "/admin/"

log = structlog.get_logger("factory.api")


class EdgeMiddleware:
    """Sets the request's correlation id, names it in the log's context and in the answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        identifier = str(correlation_of(request))
        started = time.perf_counter()
        with bound_contextvars(correlation_id=identifier):
            response = _refused(request) or self.get_response(request)
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
    """Return whether a NUL character is in the address."""
    return "\x00" in request.path or "%00" in request.META.get("QUERY_STRING", "")


def _log(request: HttpRequest, response: HttpResponse, seconds: float) -> None:
    """One line a request: its path without what is secret in it, but neither its query nor its body."""
    level = log.warning if response.status_code >= 500 else log.info
    level(
        "request",
        method=request.method,
        path=without_links(request.path),
        status=response.status_code,
        ms=round(seconds * 1000, 1),
    )


def problem_response(request: HttpRequest, problem: Problem) -> HttpResponse:
    body = problem.body(instance=request.path, trace_id=str(correlation_of(request)))
    return JsonResponse(body, status=problem.status, content_type=CONTENT_TYPE, headers=dict(problem.headers))
