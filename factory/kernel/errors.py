"""Refusals: every rule that says no is one class with a stable code.

Interfaces translate a `DomainError` in one place: REST to problem+json (RFC 9457), the admin to a
message, a task to a retry if it is `retryable`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault of an input: `pointer` is a JSON Pointer (RFC 6901) to its place."""

    pointer: str
    detail: str


class DomainError(Exception):
    """A command was refused. Nothing that it did is kept.

    `code` is the stable slug of the problem page, `audited` says that the refusal itself is
    evidence and is written to the audit log after the command was rolled back.
    """

    code: ClassVar[str] = "refused"
    title: ClassVar[str] = "The request was refused"
    http_status: ClassVar[int] = 400
    retryable: ClassVar[bool] = False
    audited: ClassVar[bool] = False
    retry_seconds: ClassVar[float] = 0.0
    """How long a handler's event waits at the least before it is tried again."""

    def __init__(
        self, detail: str, *, errors: Sequence[FieldError] = (), extra: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors)
        self.extra = dict(extra or {})

    def __str__(self) -> str:
        return self.detail

    @property
    def more(self) -> tuple[FieldError, ...]:
        """Those of its faults that the detail does not say in the same words."""
        return tuple(fault for fault in self.errors if fault.detail not in self.detail)

    def in_words(self) -> str:
        """All of it in one paragraph."""
        return " ".join([f"{self.title}.", self.detail, *(fault.detail for fault in self.more)])


class InvalidInput(DomainError):
    """The input is malformed; `errors` points at each fault."""

    code = "invalid-input"
    title = "The input is not valid"
    http_status = 400


class ValueNotKept(InvalidInput):
    """A number or a text that PostgreSQL's jsonb would not give back as it was sent."""

    code = "value-not-kept"
    title = "A value cannot be kept as it was sent"


class IdempotencyKeyMissing(InvalidInput):
    code = "idempotency-key-missing"
    title = "An Idempotency-Key is required"


class Unauthenticated(DomainError):
    code = "unauthenticated"
    title = "The caller is not known"
    http_status = 401


class Forbidden(DomainError):
    code = "forbidden"
    title = "The caller may not do this"
    http_status = 403


class InsufficientScope(Forbidden):
    code = "insufficient-scope"
    title = "The token lacks a scope"


class InsufficientRole(Forbidden):
    code = "insufficient-role"
    title = "The caller's roles do not allow this"


class NotFound(DomainError):
    """It does not exist, or not for this caller: the two look alike on purpose."""

    code = "not-found"
    title = "There is no such thing here"
    http_status = 404


class Conflict(DomainError):
    code = "conflict"
    title = "The state of things has moved on"
    http_status = 409


class IdempotencyConflict(Conflict):
    code = "idempotency-conflict"
    title = "The key was used for another request"


class AlreadyThere(Conflict):
    """Refuse what the database has once; no guard of the command had seen that it is there."""

    code = "already-there"
    title = "Something that is there once was to be made again"


class VersionMismatch(Conflict):
    code = "version-mismatch"
    title = "Another version is current"


class TransitionRefused(Conflict):
    code = "transition-refused"
    title = "This state does not allow it"


class Gone(DomainError):
    code = "gone"
    title = "It is over"
    http_status = 410


class TooLarge(DomainError):
    code = "too-large"
    title = "The input is too large"
    http_status = 413


class Unprocessable(DomainError):
    """Well formed, but not acceptable as things are."""

    code = "unprocessable"
    title = "The request cannot be accepted"
    http_status = 422


class OutcomeUnknown(DomainError):
    """The database went away under it: it may have been done, and may not."""

    code = "outcome-unknown"
    title = "It is not known whether it was done"
    http_status = 503

    def __init__(self) -> None:
        super().__init__(
            "The database went away meanwhile. Look whether it was done before you send it again."
        )


class ItemFailed(DomainError):
    """A fault of its own kept one of many from being done; it was rolled back."""

    code = "item-failed"
    title = "A fault kept it from being done"
    http_status = 500

    def __init__(self) -> None:
        super().__init__("Nothing of it was changed. The log has the fault under its id: tell an operator.")


class NotTried(DomainError):
    """The database had gone away before its turn came."""

    code = "not-tried"
    title = "Nothing was tried"
    http_status = 503

    def __init__(self) -> None:
        super().__init__("The database had gone away before its turn came. It can be sent again.")


class Busy(DomainError):
    """Somebody else holds what this needs; the same call may succeed in a moment."""

    code = "busy"
    title = "Try again in a moment"
    http_status = 503
    retryable = True
