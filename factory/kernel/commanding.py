"""@command opens the one transaction that an act of the control plane is; @operation joins it.

A command is: lock → transition → record. Its transaction is durable and bound to the tenant of its
context, and its state, journal, outbox, audit and idempotency record commit together or not at all.
"""

import functools
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import structlog
from django.core.exceptions import ObjectDoesNotExist
from django.db import IntegrityError, OperationalError, connection
from django_fsm import TransitionNotAllowed

from factory.kernel import chain, tenancy
from factory.kernel.context import Context
from factory.kernel.errors import (
    AlreadyThere,
    Busy,
    DomainError,
    IdempotencyConflict,
    NotFound,
    TransitionRefused,
)
from factory.kernel.hints import OUTBOX, once_committed, wake
from factory.kernel.permissions import authorize
from factory.kernel.recording import Work, _open, open_work
from factory.kernel.telemetry.hooks import command_span

P = ParamSpec("P")
R = TypeVar("R")

log = structlog.get_logger("factory.kernel.commanding")

SERIALIZATION_FAILURE, DEADLOCK, LOCK_TIMEOUT, STATEMENT_TIMEOUT = "40001", "40P01", "55P03", "57014"
RETRIED = {SERIALIZATION_FAILURE, DEADLOCK, LOCK_TIMEOUT}
"""What leaves no doubt that nothing was committed. A lost connection does not, and is not retried."""

EVIDENCE = frozenset(
    f"factory_{name}"
    for name in (
        "auditentry", "chainhead", "finding", "journalentry", "outboxevent", "purge", "webhookdelivery",
    )
)  # fmt: skip
"""Tables that the product alone fills with keys of its own making."""
TAKEN = ("23505", "23P01")
"""What the database has once, by a unique key or an exclusion."""

ATTEMPTS = 4
ATTEMPTS_UNDER_A_KEY = 8
"""Who loses the race for a key waits for the winner's answer, which is theirs too: a lock time-out is then
no sign that something is wrong, and a refusal would only make the caller ask again."""
LONGEST_PAUSE = 0.5


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """Under which key a command may happen only once, and the hash of what it was asked."""

    key: str
    request_hash: str = ""
    operation: str = ""


class IdempotentReplay(Exception):
    """The command happened before under this key; `result` is what it answered then."""

    def __init__(self, result: Any) -> None:
        super().__init__("This was done before.")
        self.result = result


_commands: dict[str, "Command[Any, Any]"] = {}


class Command(Generic[P, R]):
    """A command: call it with a context and keyword arguments.

    `command.under(once)` is the same command with a record that it happened: inserted first, in
    the transaction of the effect. A refusal leaves none, because the world may change.
    """

    def __init__(
        self, name: str, body: Callable[Concatenate[Context, P], R], *, audited: bool, strict: bool
    ) -> None:
        functools.update_wrapper(self, body)
        self.name, self.body, self.audited, self.strict = name, body, audited, strict

    def __call__(self, ctx: Context, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._run(None, ctx, *args, **kwargs)

    def under(self, once: IdempotencyKey) -> Callable[Concatenate[Context, P], R]:
        """The command, done at most once under `once`.

        Raises `IdempotentReplay` with the first result for the same key and request, and
        `IdempotencyConflict` when the key was used for another request.
        """

        def call(ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> R:
            return self._run(once, ctx, *args, **kwargs)

        return call

    def _run(self, once: IdempotencyKey | None, ctx: Context, *args: P.args, **kwargs: P.kwargs) -> R:
        with command_span(self.name, ctx):
            try:
                authorize(ctx, self.name)
                attempts = ATTEMPTS_UNDER_A_KEY if once else ATTEMPTS
                return _retrying(lambda: self._transact(once, ctx, *args, **kwargs), attempts)
            except DomainError as refusal:
                self.note(ctx, refusal)
                raise
            except IntegrityError as fault:
                if getattr(fault.__cause__, "sqlstate", None) not in TAKEN or _is_of_evidence(fault):
                    raise  # a defect: what breaks another constraint should never have been tried
                raise _already_there(fault) from fault

    def note(self, ctx: Context, refusal: DomainError) -> None:
        """Audit a refusal that is evidence. An interface that refuses before it calls does so too.

        A caller of no tenant, such as a worker, has no audit log that it could be written to.
        """
        evidence = refusal.audited or (self.strict and not refusal.retryable)
        if evidence and ctx.tenant_id:
            self._audit_refusal(ctx, refusal)

    def _transact(self, once: IdempotencyKey | None, ctx: Context, *args: P.args, **kwargs: P.kwargs) -> R:
        work = Work(ctx, self.name)
        with tenancy.bound(ctx):
            token = _open.set(work)
            try:
                claimed = _claim(work, once) if once else None
                result = self.body(ctx, *args, **kwargs)
                if chain.write(work, audited=self.audited):
                    wake(OUTBOX)
                if claimed is not None:
                    _store_result(claimed, result)
            except TransitionNotAllowed as refused:
                raise TransitionRefused(str(refused)) from refused
            except ObjectDoesNotExist as missing:
                raise NotFound("There is no such thing here.") from missing
            finally:
                _open.reset(token)
        return result

    def _audit_refusal(self, ctx: Context, refusal: DomainError) -> None:
        """In a transaction of its own: the refused command has left nothing behind."""
        work = Work(ctx, self.name)
        work.notes.append(chain.refusal_note(self.name, refusal))

        def write() -> None:
            with tenancy.bound(ctx):
                chain.write(work, audited=False)

        _retrying(write)  # whoever is in the way of the log must not keep evidence out of it


def command(
    name: str, *, audited: bool = True, strict: bool = False
) -> Callable[[Callable[Concatenate[Context, P], R]], Command[P, R]]:
    """Declare a command. `name` is its operation in the permission table and in the audit log.

    `audited=False` is for what happens by the thousand and is no act of a person: a heartbeat.
    `strict` is for acts whose every refusal is evidence, whichever error says no.
    """

    def declare(body: Callable[Concatenate[Context, P], R]) -> Command[P, R]:
        if name in _commands:
            raise ValueError(f"There is already a command {name}.")
        made = Command(name, body, audited=audited, strict=strict)
        _commands[name] = made
        return made

    return declare


def commands() -> dict[str, Command[Any, Any]]:
    """Every declared command by its name."""
    return dict(_commands)


def operation(body: Callable[Concatenate[Context, P], R]) -> Callable[Concatenate[Context, P], R]:
    """Declare a step inside a caller's command. Outside one it raises `NoCommandOpen`."""

    @functools.wraps(body)
    def join(ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> R:
        open_work()
        return body(ctx, *args, **kwargs)

    return join


def after_commit(hint: Callable[[], object]) -> None:
    """Run a hint after the commit. It may be lost, and its failure harms nothing."""
    once_committed(hint)


def _retrying(run: Callable[[], R], attempts: int = ATTEMPTS) -> R:
    for attempt in range(1, attempts + 1):
        try:
            return run()
        except OperationalError as fault:
            state = getattr(fault.__cause__, "sqlstate", None)
            if state == STATEMENT_TIMEOUT or (state in RETRIED and attempt == attempts):
                raise Busy("Somebody else holds what this needs. Nothing was changed; try again.") from fault
            if state not in RETRIED:
                raise
            log.info("command_retried", sqlstate=state, attempt=attempt)
            time.sleep(min(LONGEST_PAUSE, random.uniform(0.01, 0.05) * 2**attempt))
    raise AssertionError("unreachable")


def _is_of_evidence(fault: IntegrityError) -> bool:
    """Return whether what is taken is a place in a chain or a record of ours: nobody chose it."""
    return getattr(getattr(fault.__cause__, "diag", None), "table_name", None) in EVIDENCE


def _already_there(fault: IntegrityError) -> AlreadyThere:
    name = getattr(getattr(fault.__cause__, "diag", None), "constraint_name", None) or "a constraint"
    return AlreadyThere(
        f"It is there already ({name}); nothing was changed. Look for it, or make another one under another "
        "name or key."
    )


OTHER_REQUEST = (
    "This key was used for another request. Use a new key for new work, or send exactly the first request "
    "again to see its answer."
)
_CLAIM = """
INSERT INTO factory_idempotencyrecord (tenant_id, scope, operation, key, request_hash, created_at)
VALUES (%s, %s, %s, %s, %s, clock_timestamp())
ON CONFLICT (tenant_id, scope, operation, key) DO NOTHING RETURNING id
"""
_EARLIER = """
SELECT request_hash, result FROM factory_idempotencyrecord
WHERE tenant_id = %s AND scope = %s AND operation = %s AND key = %s
"""


def _claim(work: Work, once: IdempotencyKey) -> int:
    """Insert the record that this happens; waits for a rival that is about to commit the same."""
    ctx = work.ctx
    where = [ctx.tenant_id, str(ctx.project_id or ""), once.operation or work.operation, once.key]
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, [*where, once.request_hash])
        row = cursor.fetchone()
        if row is not None:
            return int(row[0])
        cursor.execute(_EARLIER, where)
        request_hash, result = cursor.fetchone()
    if request_hash != once.request_hash:
        raise IdempotencyConflict(OTHER_REQUEST)
    raise IdempotentReplay(_parsed(result))


def _parsed(result: Any) -> Any:
    return json.loads(result) if isinstance(result, str) else result


def _store_result(claimed: int, result: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE factory_idempotencyrecord SET result = %s::jsonb WHERE id = %s",
            [json.dumps(result), claimed],
        )
