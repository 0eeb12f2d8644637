"""What the control plane refused, and what stopped the work, as types that one can catch."""

from collections.abc import Mapping
from typing import Any


class WorkerError(Exception):
    """Anything that the worker surface answered other than yes."""


class Unreachable(WorkerError):
    """No usable answer within the patience of the call."""


class ApiRefused(WorkerError):
    """A problem+json answer. `slug` is the stable last part of its type."""

    def __init__(self, status: int, slug: str, detail: str, body: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{status} {slug}: {detail}")
        self.status = status
        self.slug = slug
        self.detail = detail
        self.body = dict(body or {})


class Invalid(ApiRefused):
    """400, 413, 415, 422: the same body will never be accepted."""


class Unauthorized(ApiRefused):
    """401: the token is missing, expired or revoked."""


class ApiForbidden(ApiRefused):
    """403."""


class ApiPolicyDenied(ApiForbidden):
    """403 `policy-denied`: the action may not happen, whoever approves."""


class ApiNotFound(ApiRefused):
    """404."""


class ApiConflict(ApiRefused):
    """409."""


class Frozen(ApiRefused):
    """409 `run-frozen`: the run stands still until a person lifts it. The lease is kept; ask again."""


class Superseded(ApiConflict):
    """409 `worker-superseded`: a younger process has this worker's name."""


class ApiGone(ApiRefused):
    """410: too late."""


class LeaseLost(ApiRefused):
    """The lease is somebody else's or nobody's: stop, and report nothing more."""


class StaleToken(LeaseLost, ApiConflict):
    """409 `stale-fencing-token`."""


class ApiLeaseExpired(LeaseLost, ApiGone):
    """410: the lease ended before the call."""


class SkillFailed(Exception):
    """A skill ends its attempt as Failed, and says of which class."""

    def __init__(self, failure_class: str, reason: str) -> None:
        super().__init__(reason)
        self.failure_class = failure_class
        self.reason = reason


class ToolFailed(Exception):
    """A program answered with an error, took too long or wrote too much."""

    def __init__(self, name: str, reason: str, *, exit_code: int | None = None, stderr: str = "") -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.reason = reason
        self.exit_code = exit_code
        self.stderr = stderr


class Interrupted(BaseException):
    """The run was cancelled, the lease was lost or the worker drains. A skill must not swallow it."""


class Parked(BaseException):
    """The attempt waits for a person and the lease was handed back: there is no outcome yet."""


LEASE_SLUGS = {"lease-expired"}


def refusal(status: int, body: Mapping[str, Any]) -> ApiRefused:
    """The typed error for a problem+json answer."""
    slug = str(body.get("type", "")).rstrip("/").rsplit("/", 1)[-1] or f"http-{status}"
    detail = str(body.get("detail") or body.get("title") or "no reason given")
    return _kind(status, slug)(status, slug, detail, body)


def _kind(status: int, slug: str) -> type[ApiRefused]:
    if slug == "stale-fencing-token":
        return StaleToken
    if slug in LEASE_SLUGS:
        return ApiLeaseExpired
    by_slug = {"worker-superseded": Superseded, "policy-denied": ApiPolicyDenied, "run-frozen": Frozen}
    if slug in by_slug:
        return by_slug[slug]
    by_status = {400: Invalid, 413: Invalid, 415: Invalid, 422: Invalid, 401: Unauthorized, 403: ApiForbidden}
    return by_status.get(status) or {404: ApiNotFound, 409: ApiConflict, 410: ApiGone}.get(status, ApiRefused)
