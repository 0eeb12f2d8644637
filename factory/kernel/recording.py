"""record(): the only writer of journal, audit log and outbox.

Within a command the entries are collected and written together just before the commit, in two
statements: the first takes the chain heads (and with them the gapless numbers), the second adds
the rows and moves the heads. The format of a chain is `factory.kernel.chain`.
"""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from factory.kernel.context import Context
from factory.kernel.events import Event, wire
from factory.kernel.lifecycle import Edge
from factory.kernel.models.base import Journaled, Refs, TenantModel
from factory.kernel.tenancy import active_or_none
from factory.kernel.writing import MOST_AT_ONCE, update_rows


class NoCommandOpen(RuntimeError):
    """Something was recorded outside any command: a defect of the caller."""


class UndeclaredTransition(RuntimeError):
    """A transition, cause or event that the lifecycle does not declare: a defect of the caller."""


@dataclass(frozen=True, slots=True)
class PendingEntry:
    """A journal entry that waits for the end of its command."""

    stream: UUID
    entity: str
    entity_id: UUID
    cause: str
    before: str
    after: str
    refs: Refs
    events: Sequence[Event]
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AuditNote:
    """An audit entry that waits for the end of its command."""

    action: str
    subject: str
    outcome: str
    reason: str
    detail: Mapping[str, Any]
    stream: UUID | None = None


@dataclass(slots=True)
class Work:
    """Hold what the open command has recorded so far."""

    ctx: Context
    operation: str
    entries: list[PendingEntry] = field(default_factory=list)
    notes: list[AuditNote] = field(default_factory=list)
    versioned: set[UUID] = field(default_factory=set)


_open: ContextVar[Work | None] = ContextVar("factory_open_work", default=None)


def open_work() -> Work:
    """The open command's record; raises `NoCommandOpen` outside one."""
    work = _open.get()
    if work is None or active_or_none() is None:  # a copied context variable is no open transaction
        raise NoCommandOpen("This needs an open command: call it from a @command or an @operation in one.")
    return work


def record(
    ctx: Context,
    obj: Journaled,
    cause: str,
    *events: Event,
    detail: Mapping[str, Any] | None = None,
    keeps_version: bool = False,
) -> None:
    """Save what changed on `obj` and journal its transition with its cause and its events.

    The transition goes from the state that the journal last saw to `obj.state`. It must be an
    edge of the lifecycle, for this cause, with exactly the declared events (`UndeclaredTransition`
    otherwise). `detail` holds ids and codes only: it is kept as evidence for years. What `keeps_version`
    changes nothing that anybody else has to have seen before they act.
    """
    work = _work_of(ctx)
    before, after = obj.recorded_state, str(obj.state)
    _check_declared(obj, before, after, cause, events)
    if not keeps_version:
        _raise_version(work, obj)
    save(obj)
    work.entries.append(_entry(obj, before, cause, events, detail))


def record_new(ctx: Context, made: Sequence[tuple[Journaled, str, Sequence[Event]]]) -> None:
    """`record()` for many new rows of one table: (row, cause, events) each, in one statement."""
    if not made:
        return
    work = _work_of(ctx)
    rows = [obj for obj, _, _ in made]
    for obj, cause, events in made:
        _check_declared(obj, obj.recorded_state, str(obj.state), cause, events)
        obj.tenant_id = obj.tenant_id or ctx.tenant_id
        _raise_version(work, obj)
    work.entries += [_entry(obj, obj.recorded_state, cause, events) for obj, cause, events in made]
    type(rows[0]).objects.bulk_create(rows, batch_size=MOST_AT_ONCE)
    for obj in rows:
        obj.remember()


@dataclass(frozen=True, slots=True)
class Move:
    """A transition that a locked row has made, with its cause and what it tells."""

    obj: Journaled
    cause: str
    events: Sequence[Event] = ()
    detail: Mapping[str, Any] | None = None


def record_many(ctx: Context, moves: Sequence[Move]) -> None:
    """`record()` for many locked rows of one table, in a number of statements that does not grow with theirs.

    Each is checked against its lifecycle, saved over the state and the version that were read, and
    journaled, in this order. Raises `UndeclaredTransition`, and `Busy` when a row was overtaken.
    """
    if not moves:
        return
    work = _work_of(ctx)
    entries = []
    for move in moves:
        obj, before = move.obj, move.obj.recorded_state
        _check_declared(obj, before, str(obj.state), move.cause, move.events)
        entries.append(_entry(obj, before, move.cause, move.events, move.detail))
        _raise_version(work, obj)
    update_rows([move.obj for move in moves])
    work.entries += entries


def _work_of(ctx: Context) -> Work:
    """The open command's record, if it works in the tenant of `ctx`."""
    work = open_work()
    if ctx.tenant_id != work.ctx.tenant_id:
        raise NoCommandOpen(f"The open command works in {work.ctx.tenant_id}, not in {ctx.tenant_id}.")
    return work


def _entry(
    obj: Journaled, before: str, cause: str, events: Sequence[Event], detail: Mapping[str, Any] | None = None
) -> PendingEntry:
    return PendingEntry(
        stream=obj.stream,
        entity=obj.lifecycle.entity,
        entity_id=obj.id,
        cause=cause,
        before=before,
        after=str(obj.state),
        refs=obj.refs,
        events=events,
        detail=wire({**obj.journal_snapshot, **(detail or {})}),
    )


def save(obj: TenantModel) -> None:
    """Insert `obj`, or update just its changed columns. For what made no transition."""
    work = open_work()
    if not obj.tenant_id:
        obj.tenant_id = work.ctx.tenant_id
    if obj._state.adding:
        obj.save(force_insert=True)
    else:
        changed = obj.changed_fields()
        if changed:
            obj.save(update_fields=changed)
    obj.remember()


MOST_NAMED = 20


def named(ids: Sequence[str]) -> dict[str, Any]:
    """Return how many there are and the first of them, for the detail of an entry: any number fits."""
    return {"count": len(ids), "first": list(ids[:MOST_NAMED])}


def audit(
    ctx: Context,
    action: str,
    *,
    subject: str,
    outcome: str = "done",
    reason: str = "",
    detail: Mapping[str, Any] | None = None,
    stream: UUID | None = None,
) -> None:
    """An audit entry besides the one that each command writes by itself."""
    note = AuditNote(action, subject, outcome, reason, wire(detail or {}), stream)
    open_work().notes.append(note)


def _check_declared(obj: Journaled, before: str, after: str, cause: str, events: Sequence[Event]) -> Edge:
    edge = obj.lifecycle.edge(before, after, cause)
    if edge is None:
        raise UndeclaredTransition(f"{obj.lifecycle.entity}: {before} → {after} is not declared for {cause}.")
    told = [e.topic for e in events]
    missing = set(edge.events) - set(told)
    strange = set(told) - set(edge.events) - set(edge.optional)
    if missing or strange:
        raise UndeclaredTransition(
            f"{obj.lifecycle.entity}: {before} → {after} for {cause} tells {told}; "
            f"missing {sorted(missing)}, undeclared {sorted(strange)}."
        )
    return edge


def _raise_version(work: Work, obj: Journaled) -> None:
    """The version counts commands that changed the entity, not the steps within one."""
    if not hasattr(obj, "version") or obj.id in work.versioned:
        return
    work.versioned.add(obj.id)
    current = obj.version or 0
    obj.version = 1 if obj._state.adding else current + 1
