"""Rows that lag behind the journal after a restore: which they are, and how they are brought up to it.

The journal leads, never the other way round. What an app knows about its own rows it declares with
`repairs()`: the columns that go with a state, and how a row shows that it lags although its state does not.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connection

from factory.evidence.auditor import snapshot
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.models import AuditEntry, JournalEntry, OutboxEvent
from factory.kernel.models.base import Journaled
from factory.kernel.recording import audit

STAGES = ("journal", "approvals", "releases", "outbox")


class EventsPastTheirTime(Exception):
    """Refuse to bring a row up: what an entry told stood in an event that has been purged, and nobody may
    put a default in its place."""


class _Told(dict[str, Any]):
    """Data of an entry of which events are purged: what is missing is not empty, but unknown."""

    def __missing__(self, name: str) -> Any:
        raise EventsPastTheirTime(f"the event that told {name} is past its time")

    def get(self, name: str, default: Any = None) -> Any:
        return self[name]


@dataclass(frozen=True, slots=True)
class Recorded:
    """Hold what the journal says about an entity at one of its entries, and at all before it (oldest first).

    `data` is the entry's detail with the data of its events. Of an entry whose events are purged only the
    detail is known, and to ask for anything else raises `EventsPastTheirTime`.
    """

    before: str
    state: str
    at: datetime
    cause: str
    actor: str
    data: Mapping[str, Any]
    earlier: tuple["Recorded", ...] = ()

    @property
    def story(self) -> tuple["Recorded", ...]:
        """All entries, oldest first."""
        return (*self.earlier, self)

    @property
    def entered(self) -> "Recorded":
        """The entry that led into the present state; those after it, if any, stayed in it."""
        entered = (one for one in reversed(self.story) if one.before != one.state)
        return next(entered, self.story[0])  # of a story whose beginning is past its time

    def last(self, *causes: str) -> "Recorded | None":
        """The newest entry of one of these causes."""
        return next((one for one in reversed(self.story) if one.cause in causes), None)

    def reached(self, state: str) -> datetime | None:
        """Return when a state was entered last, if it ever was."""
        entered = (one.at for one in reversed(self.story) if one.state == state != one.before)
        return next(entered, None)


Columns = Callable[[Any, Recorded], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Repair:
    """Say how rows of one table are brought up. `behind` is SQL on the row `e` and its last entry `j`.

    A version counts the commands that changed a row, but for those of the causes in `unversioned`.
    """

    model: type[Journaled]
    columns: Columns
    behind: str
    unversioned: tuple[str, ...]

    @property
    def versioned(self) -> bool:
        return any(field.attname == "version" for field in self.model._meta.concrete_fields)


_repairs: dict[str, list[Repair]] = {stage: [] for stage in STAGES}


def repairs(
    stage: str,
    model: type[Journaled],
    columns: Columns = lambda row, said: {},
    *,
    behind: str = "false",
    unversioned: tuple[str, ...] = (),
) -> None:
    """Declare whose rows a stage brings up to the journal, and which columns go with the state.

    A row lags if its state differs, or if its version is lower than the number of commands that changed
    it. `behind` says so of others. It may look only at what changes by journaled transitions or grows with
    rows that are never changed: anything else would be taken back.
    """
    _repairs[stage].append(Repair(model, columns, behind, unversioned))


def repairs_of(stage: str) -> tuple[Repair, ...]:
    """Return what a stage brings up, in the order in which it was declared."""
    return tuple(_repairs[stage])


def repair_of(model: type[Journaled]) -> Repair:
    """Return how a table's rows are brought up; by their state alone where nobody has declared it."""
    declared = (one for stage in STAGES for one in _repairs[stage] if one.model is model)
    return next(declared, Repair(model, lambda row, said: {}, "false", ()))


def why(fault: Exception) -> str:
    """Return what stood in the way of a row, in words: a constraint, or a refusal."""
    if isinstance(fault, IntegrityError):
        name = getattr(getattr(fault.__cause__, "diag", None), "constraint_name", "") or "a constraint"
        return f"{name} needs more"
    return str(fault) or type(fault).__name__


def audited_reason(row: Journaled, *actions: str) -> str:
    """The words that somebody gave for the last of these acts on an entity; empty where none was audited."""
    subject = f"{row.lifecycle.entity}:{row.id}"
    told = AuditEntry.objects.filter(action__in=actions, outcome="done", subject=subject).exclude(reason="")
    found = told.order_by("-occurred_at", "-sequence").first()
    return str(found.reason) if found else ""


def rows_behind(model: type[Journaled]) -> list[tuple[str, UUID, str]]:
    """Rows that are not as the journal says last, with the state that it says."""
    repair = repair_of(model)
    counted = (
        "e.version < (SELECT count(DISTINCT c.transaction_id) FROM factory_journalentry c "
        "WHERE c.entity_id = e.id AND c.cause <> ALL(%s))"
    )
    with snapshot() as cursor:
        cursor.execute(
            f"""
            SELECT e.tenant_id, e.id, j.to_state FROM "{model._meta.db_table}" e JOIN LATERAL (
                SELECT to_state, cause, detail FROM factory_journalentry
                WHERE entity_id = e.id AND entity = %s ORDER BY sequence DESC LIMIT 1) j ON true
            WHERE j.to_state <> e.state OR coalesce(({repair.behind}), false)
               OR {counted if repair.versioned else "false AND '' <> ALL(%s)"}
            ORDER BY e.id
            """,
            [model.lifecycle.entity, list(repair.unversioned)],
        )
        return list(cursor.fetchall())


@command("BringUpToJournal")
def replay(ctx: Context, *, repair: Repair, entity_id: UUID) -> bool:
    """Make a row what the journal says last; whether it lagged.

    No transition happens, so none is journaled: the database accepts exactly this state and no other.
    """
    model = repair.model
    row = model.objects.select_for_update(no_key=True).get(pk=entity_id)
    entries = list(JournalEntry.objects.filter(entity_id=entity_id).order_by("sequence"))
    if not entries:
        return False
    said, last = _said(entries), entries[-1]
    fields = {field.attname: field for field in model._meta.concrete_fields}
    wanted = {"state": said.state, **repair.columns(row, said)}
    values = {name: fields[name].to_python(value) for name, value in wanted.items()}
    values = {name: value for name, value in values.items() if value != getattr(row, name)}
    commands = {entry.transaction_id for entry in entries if entry.cause not in repair.unversioned}
    if repair.versioned and (values or row.version < len(commands)):
        values["version"] = max(row.version + 1, len(commands))  # higher than any that somebody can have seen
    if not values:
        return False
    _write(model, entity_id, values)
    audit(
        ctx,
        "BringUpToJournal",
        subject=f"{model.lifecycle.entity}:{entity_id}",
        reason="The row lagged behind the journal after a restore.",
        detail={"from": str(row.state), "to": said.state, "sequence": last.sequence},
        stream=last.stream_id,
    )
    return True


def _said(entries: Sequence[JournalEntry]) -> Recorded:
    """All that these entries say about their entity, with the data of their events."""
    ids = [event["id"] for entry in entries for event in entry.events]
    told = {str(event.id): event.payload for event in OutboxEvent.objects.filter(id__in=ids)}
    story: tuple[Recorded, ...] = ()
    for entry in entries:
        kept = [told[event["id"]] for event in entry.events if event["id"] in told]
        data = (dict if len(kept) == len(entry.events) else _Told)(entry.detail)
        for payload in kept:
            data.update(payload)
        moved = (entry.from_state, entry.to_state, entry.occurred_at, entry.cause, entry.actor)
        story = (*story, Recorded(*moved, data, story))
    return story[-1]


def _write(model: type[Journaled], entity_id: UUID, values: Mapping[str, Any]) -> None:
    fields = {field.attname: field for field in model._meta.concrete_fields}
    names = ", ".join(f'"{name}" = %s' for name in values)
    stored = [fields[name].get_db_prep_save(value, connection) for name, value in values.items()]
    with connection.cursor() as cursor:
        cursor.execute(f'UPDATE "{model._meta.db_table}" SET {names} WHERE id = %s', [*stored, entity_id])
