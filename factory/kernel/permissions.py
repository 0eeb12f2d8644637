"""The permission table: who may call which operation, asked in one place.

Each app declares its operations in its `permissions` room, and registers them when it is ready. An operation
with no entry is refused, so that one that somebody forgot is closed rather than open.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from factory.kernel.context import Context
from factory.kernel.errors import Forbidden, InsufficientRole, InsufficientScope

SCOPES = frozenset(
    "factory." + name
    for name in (
        "runs.read",
        "runs.write",
        "approvals.read",
        "approvals.decide",
        "usage.read",
        "usage.write",
        "registry.read",
        "registry.write",
        "projects.read",
        "projects.write",
        "audit.read",
        "worker",
        "payloads.read",
    )
)
KINDS = frozenset({"person", "service", "worker", "system"})


@dataclass(frozen=True)
class Permit:
    operation: str
    scope: str | None
    roles: frozenset[str] | None  # None: the command judges the role itself, under its locks
    kinds: frozenset[str]
    level: Literal["project", "tenant"]  # a token without a project reaches the tenant's operations only


_table: dict[str, Permit] = {}
table: Mapping[str, Permit] = MappingProxyType(_table)


def permit(
    operation: str,
    *,
    scope: str | None,
    roles: Iterable[str] | None,
    kinds: Iterable[str] = ("person", "service"),
    level: Literal["project", "tenant"] = "project",
) -> Permit:
    """Return who may call an operation. A word that nobody defined is our own mistake: it fails at start."""
    full = scope if scope is None or scope.startswith("factory.") else f"factory.{scope}"
    entry = Permit(
        operation, full, None if roles is None else frozenset(map(str, roles)), frozenset(kinds), level
    )
    if full is not None and full not in SCOPES:
        raise ValueError(f"{operation}: there is no scope {full}")
    if not entry.kinds <= KINDS:
        raise ValueError(f"{operation}: unknown kinds {sorted(entry.kinds - KINDS)}")
    return entry


def register_permit(entry: Permit) -> None:
    """Enter an operation into the table."""
    if _table.setdefault(entry.operation, entry) != entry:
        raise ValueError(f"{entry.operation} is declared twice, and differently")


def authorize(ctx: Context, operation: str) -> None:
    """Refuse unless the actor's kind, then its scopes, then its roles allow the operation."""
    entry = _table.get(operation)
    if entry is None:
        raise Forbidden(f"{operation} is in no permission table, so nobody may call it.")
    actor = ctx.actor
    if actor.kind == "system":
        return
    if actor.kind not in entry.kinds:
        raise Forbidden(f"{operation} is not open to a {actor.kind} token.")
    if entry.scope is not None and entry.scope not in actor.scopes:
        raise InsufficientScope(f"{operation} needs the scope {entry.scope}.")
    _authorize_within(ctx, entry)


def _authorize_within(ctx: Context, entry: Permit) -> None:
    if ctx.actor.kind == "worker":
        return  # a worker holds no role: its pool, its lease and its fencing token decide
    if entry.level == "project" and ctx.project_id is None:
        raise Forbidden(f"{entry.operation} is an operation of a project, and this token names none.")
    if entry.roles is not None and not entry.roles & ctx.actor.roles:
        raise InsufficientRole(f"{entry.operation} needs one of the roles {', '.join(sorted(entry.roles))}.")


def may(ctx: Context, operation: str) -> bool:
    """Tell whether the context may call an operation, for pages that show only what the reader may open."""
    try:
        authorize(ctx, operation)
    except Forbidden:
        return False
    return True
