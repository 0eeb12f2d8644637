"""What the control plane says about itself: alive, ready, its figures, its public keys, its problems."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe
from redis import RedisError

from factory.api.middleware import problem_response
from factory.api.problems import AWAY, catalogue, problem_of
from factory.evidence.schema.readiness import schema_state
from factory.identity.issuer import jwks
from factory.kernel.errors import InvalidInput, NotFound
from factory.kernel.events import schema, topics
from factory.kernel.hints import broker
from factory.kernel.telemetry.setup import exposition
from factory.kernel.text import without_links

log = structlog.get_logger(__name__)

NO_BROKER = "Away. No run stops for it: work, events and watchers are found by looking, up to seconds later."
NO_MAIL_SERVER = "Not sent to anybody: FACTORY_EMAIL_HOST names no mail server."


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"}, headers={"Cache-Control": "no-store"})


def _database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return "ok"


_migrated = False


def _migrations() -> str:
    """Asked until it is so: a process never sees its own migrations undone."""
    global _migrated
    if not _migrated:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
        _migrated = not missing
    return "ok" if _migrated else "not all applied"


def _broker() -> str:
    broker().ping()
    return "ok"


CHECKS: dict[str, Callable[[], str]] = {
    "database": _database,
    "migrations": _migrations,
    "schema": schema_state,
    "broker": _broker,
}


SPARED = {"broker": NO_BROKER}
"""Checks without which the work goes on, and what is said where one fails."""


def readiness() -> dict[str, str]:
    """Return each thing that requests use, and how it is."""
    states = {}
    for name, check in CHECKS.items():
        try:
            states[name] = check()
        except (DatabaseError, RedisError, OSError) as fault:
            log.warning("check_failed", check=name, fault=type(fault).__name__)
            states[name] = "unreachable"
    return states


def notes(found: Mapping[str, str]) -> dict[str, str]:
    """Return what is away, or switched off, and stops nothing: nobody waits for it; people should know."""
    away = {name: told for name, told in SPARED.items() if found.get(name, "ok") != "ok"}
    return away | ({} if settings.FACTORY_EMAIL_ON else {"email": NO_MAIL_SERVER})


def readiness_body(found: Mapping[str, str]) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Return status, body and headers: 200 when the process can do its work, else 503 with what is away."""
    ready = all(state == "ok" for name, state in found.items() if name not in SPARED)
    body = {"status": "ready" if ready else "not ready", "checks": dict(found), "notes": notes(found)}
    headers = {"Cache-Control": "no-store"} | ({} if ready else {"Retry-After": "2"})
    return (200 if ready else 503), body, headers


@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Tell whether the process can do its work."""
    status, body, headers = readiness_body(readiness())
    return JsonResponse(body, status=status, headers=headers)


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    body, content_type = exposition()
    return HttpResponse(body, content_type=content_type, headers={"Cache-Control": "no-store"})


PROBES: dict[str, Callable[[HttpRequest], HttpResponse]] = {
    "/healthz": healthz,
    "/readyz": readyz,
    "/metrics": metrics,
}


class Probes:
    """Answer orchestrators and scrapers, who ask by address, before anything looks at the Host header.

    Nothing that is answered here is made of the host, so none has to be believed.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return PROBES.get(request.path, self.get_response)(request)


@require_safe
@cache_control(public=True, max_age=300)
def public_keys(request: HttpRequest) -> HttpResponse:
    return JsonResponse(jwks(), content_type="application/jwk-set+json")


@require_safe
@cache_control(public=True, max_age=300)
def event_schema(request: HttpRequest, **parts: str) -> HttpResponse:
    """The JSON Schema of an event's data: where the `dataschema` of each event leads."""
    cls = topics().get(".".join(parts.values()))
    if cls is None:
        raise Http404
    return JsonResponse(schema(cls), content_type="application/schema+json")


@require_safe
def problem_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Explain what a problem's type means."""
    known = catalogue()
    if slug not in known:
        raise Http404
    status, title, meaning = known[slug]
    page = {"slug": slug, "status": status, "title": title, "meaning": meaning}
    return render(request, "factory/problem.html", page)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Of a path that leads nowhere: a problem, or a plain sentence for a browser in the admin."""
    fault = NotFound("There is no such path.")
    if request.path.startswith("/admin"):
        return HttpResponse("There is no such page.", status=404, content_type="text/plain")
    return problem_response(request, problem_of(fault))


def broken(request: HttpRequest) -> HttpResponse:
    """Answer what no view has foreseen, also a database that is away, which is met before any view."""
    fault = sys.exception()
    problem = problem_of(fault) if isinstance(fault, AWAY) else None
    if problem is not None and problem.status == 503:
        if not request.path.startswith("/admin"):
            return problem_response(request, problem)
        told = f"{problem.title}. {problem.detail}"
        retry = {"Retry-After": problem.headers["Retry-After"]}
        return HttpResponse(told, status=503, content_type="text/plain; charset=utf-8", headers=retry)
    if request.path.startswith("/admin"):
        text = "Something went wrong on our side. It was logged."
        return HttpResponse(text, status=500, content_type="text/plain")
    return problem_response(request, problem_of(RuntimeError("an error outside any view")))


def malformed(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return problem_response(request, problem_of(SuspiciousOperation()))


def wrong_host(request: HttpRequest) -> HttpResponse:
    """Refuse a host that is not served here, in one line of the log: nobody's traceback would help."""
    host, path = request.META.get("HTTP_HOST", "")[:255], without_links(request.path)
    log.warning("host_refused", host=host, path=path)
    return problem_response(request, problem_of(InvalidInput("This host is not served here.")))
