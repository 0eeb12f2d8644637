"""Every refusal and every fault as application/problem+json (RFC 9457): no stack trace, no SQL."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg
import structlog
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions as drf

from factory.kernel.errors import DomainError, FieldError
from factory.kernel.hashing import token

CONTENT_TYPE = "application/problem+json"
PROBLEMS = "/factory/problems/"

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Problem:
    """Hold what is answered, before any web framework turns it into a response."""

    status: int
    code: str
    title: str
    detail: str
    errors: tuple[FieldError, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self, *, instance: str, trace_id: str) -> dict[str, Any]:
        body: dict[str, Any] = {
            **self.extra,
            "type": PROBLEMS + self.code,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "instance": instance,
            "traceId": trace_id,
        }
        if self.errors:
            body["errors"] = [
                {"pointer": fault.pointer, "detail": fault.detail} for fault in _first(self.errors)
            ]
        return body


MOST_ERRORS = 100
"""A body of a megabyte may have a fault every few bytes; its answer stays readable."""


def _first(errors: tuple[FieldError, ...]) -> tuple[FieldError, ...]:
    more = len(errors) - MOST_ERRORS
    return errors if more <= 0 else (*errors[:MOST_ERRORS], FieldError("", f"And {more:,} more faults."))


# Refusals that no command makes: they come from the transport or from the control plane being unwell.
GENERAL: dict[str, tuple[int, str, str]] = {
    "method-not-allowed": (405, "The method is not allowed here", "See the Allow header for those that are."),
    "not-acceptable": (406, "No such representation", "Answers are JSON."),
    "too-many-requests": (429, "Too many requests", "Wait as long as Retry-After says."),
    "database-unavailable": (503, "The database is away", "Nothing was lost; try again after Retry-After."),
    "internal-error": (500, "Something went wrong on our side", "Quote the traceId to whoever runs this."),
}

QUERY_CANCELED = "57014"
# 55P03 lock_not_available, query_canceled, 40001 and 40P01: somebody else was in the way.
CONTENTION = frozenset({"55P03", QUERY_CANCELED, "40001", "40P01"})
AWAY = (DatabaseError, InterfaceError)
"""What Django raises where the database does not answer as it should: of its defects, only some are 503."""
# 25P03: the database ended a transaction that stood still for too long, and all of it is undone.
GONE = frozenset({"25P03"})


FOR_THE_AUDIT_LOG = frozenset({"subject", "stream", "evidence"})


def problem_of(fault: BaseException) -> Problem:
    """The problem that a fault is told as; what nobody foresaw is logged, and told without a detail."""
    for kind, translate in _TRANSLATIONS:
        if isinstance(fault, kind):
            return translate(fault)
    log.exception("unforeseen_fault", exc_info=fault)
    return _general("internal-error")


def _general(code: str, *, headers: Mapping[str, str] | None = None, detail: str = "") -> Problem:
    status, title, hint = GENERAL[code]
    return Problem(status, code, title, detail or hint, headers=headers or {})


def _domain(fault: Any) -> Problem:
    headers = {}
    if fault.http_status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if fault.http_status == 503:
        headers["Retry-After"] = "1"
    members = {name: value for name, value in fault.extra.items() if name not in FOR_THE_AUDIT_LOG}
    return Problem(
        fault.http_status, fault.code, fault.title, fault.detail, tuple(fault.errors), members, headers
    )


def _database(fault: Any) -> Problem:
    state = sqlstate(fault)
    if state in CONTENTION:
        detail = "Another transaction held this for too long; nothing was changed, try again."
        return Problem(503, "busy", "Try again in a moment", detail, headers={"Retry-After": "1"})
    log.warning("database_unavailable", fault=type(fault.__cause__ or fault).__name__, sqlstate=state)
    return _general("database-unavailable", headers={"Retry-After": "5"})


def _database_defect(fault: Any) -> Problem:
    if sqlstate(fault) in CONTENTION | GONE:
        return _database(fault)
    log.exception("database_defect", exc_info=fault, sqlstate=sqlstate(fault))
    return _general("internal-error")


def sqlstate(fault: BaseException) -> str:
    """PostgreSQL's code of the fault, if it has one."""
    cause = fault.__cause__ or fault
    return str(getattr(cause, "sqlstate", None) or "")


def _invalid(fault: Any) -> Problem:
    errors = tuple(field_errors(fault.detail))
    detail = "The input is not valid." if errors else "The request is malformed."
    return Problem(400, "invalid-input", "The input is not valid", detail, errors)


def field_errors(detail: Any, pointer: str = "") -> Iterator[FieldError]:
    """DRF's nested errors as pointers, one for each fault."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            own = pointer if name == "non_field_errors" else f"{pointer}/{token(str(name))}"
            yield from field_errors(inner, own)
    elif isinstance(detail, list) and any(isinstance(item, Mapping | list) for item in detail):
        for index, inner in enumerate(detail):
            yield from field_errors(inner, f"{pointer}/{index}") if inner else ()
    elif isinstance(detail, list):
        for inner in detail:
            yield FieldError(pointer, str(inner))
    else:
        yield FieldError(pointer, str(detail))


def _malformed(fault: Any) -> Problem:
    return Problem(400, "invalid-input", "The input is not valid", "The request is malformed.")


def _unauthenticated(fault: Any) -> Problem:
    detail = "Send a bearer token in the Authorization header."
    headers = {"WWW-Authenticate": "Bearer"}
    return Problem(401, "unauthenticated", "The caller is not known", detail, headers=headers)


def _forbidden(fault: Any) -> Problem:
    return Problem(403, "forbidden", "The caller may not do this", "This is not open to the caller.")


def _not_found(fault: Any) -> Problem:
    return Problem(404, "not-found", "There is no such thing here", "Nothing is here for this caller.")


def _unsupported(fault: Any) -> Problem:
    title = "The body is not application/json"
    return Problem(415, "unsupported-media-type", title, "Send the body as application/json.")


def _too_large(fault: Any) -> Problem:
    return Problem(413, "too-large", "The input is too large", "The body is too large.")


def _throttled(fault: Any) -> Problem:
    return _general("too-many-requests", headers={"Retry-After": str(int(fault.wait or 1))})


def _method(fault: Any) -> Problem:
    return _general("method-not-allowed")


def _not_acceptable(fault: Any) -> Problem:
    return _general("not-acceptable")


Translation = Callable[[Any], Problem]
_TRANSLATIONS: tuple[tuple[type[BaseException], Translation], ...] = (
    (DomainError, _domain),
    (drf.ValidationError, _invalid),
    (drf.ParseError, _malformed),
    (drf.NotAuthenticated, _unauthenticated),
    (drf.AuthenticationFailed, _unauthenticated),
    (drf.PermissionDenied, _forbidden),
    (drf.NotFound, _not_found),
    (Http404, _not_found),
    (drf.MethodNotAllowed, _method),
    (drf.NotAcceptable, _not_acceptable),
    (drf.UnsupportedMediaType, _unsupported),
    (drf.Throttled, _throttled),
    (RequestDataTooBig, _too_large),
    (SuspiciousOperation, _malformed),
    (OperationalError, _database),
    (psycopg.OperationalError, _database),
    (InterfaceError, _database),
    (DatabaseError, _database_defect),
)


def catalogue() -> dict[str, tuple[int, str, str]]:
    """Every stable slug: its status, its title and what it means, for the pages that explain them."""
    problems = dict(GENERAL)
    pending: list[type[DomainError]] = [DomainError]
    while pending:
        kind = pending.pop()
        pending.extend(kind.__subclasses__())
        inherited = next((c.__doc__ for c in kind.__mro__ if issubclass(c, DomainError) and c.__doc__), "")
        problems.setdefault(kind.code, (kind.http_status, kind.title, " ".join((inherited or "").split())))
    problems["unsupported-media-type"] = (415, "The body is not application/json", "Send JSON.")
    return problems
