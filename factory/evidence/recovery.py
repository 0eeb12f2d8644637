"""Bring everything back after a restore: journal → approvals → releases → outbox and inbox, in this order.

The journal is the anchor: rows that lag behind it are brought up to what it says last, never the other
way round. Every act is a command, so a recovery that was killed is simply run again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection

from factory.evidence.anchors import counting, place
from factory.evidence.anchors.checking import compare, newest_surviving
from factory.evidence.anchors.taking import NotHandedOver, take
from factory.evidence.auditor import VerificationReport, audit_all, snapshot, verify
from factory.evidence.journal_replay import STAGES, Repair, repairs_of, replay, rows_behind, why
from factory.kernel.bulkhead import Bulkhead
from factory.kernel.context import system
from factory.kernel.tenancy import bound, scanning

LAST_OF_ROWS = "releases"
SOUND = ("A3", "A3b", "A3c", "A6", "A6b")
"""What must hold before anything is built on the journal."""


OVERTAKING = timedelta(seconds=60)
"""Of two commits the later one may be in the backup and the earlier not: by so much at the most."""


class StageOutOfOrder(RuntimeError):
    """A stage was entered before those that it rests on."""


class RecoveryRefused(RuntimeError):
    """Recovering now would build on sand, or against a running product."""


_epochs: list[Callable[[Mapping[str, int]], str]] = []
Leave = Callable[[str], None]
"""Hears of each thing that could not be done and needs a person."""
_after: dict[str, list[tuple[str, Callable[[Leave], int]]]] = {stage: [] for stage in STAGES}


def raises_epoch(bump: Callable[[Mapping[str, int]], str]) -> None:
    """Register what makes everything handed out before a restore void; it gets the highest anchored facts."""
    _epochs.append(bump)


def follows(stage: str, title: str, act: Callable[[Leave], int]) -> None:
    """Declare what is done once a stage is over; it answers with how many things it settled.

    What of it fails it tells and goes on: one row that cannot be mended keeps no other from it.
    """
    _after[stage].append((title, act))


@dataclass(slots=True)
class Recovery:
    """One recovery. `tell` hears every step; `left` is what needs a person."""

    tell: Callable[[str], object]
    force: bool = False
    restored_to: datetime | None = None
    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def run(self) -> VerificationReport:
        """All of it, ending with the auditor's report. Raises `RecoveryRefused`."""
        self._refuse_while_running()
        self.begin()
        for stage in STAGES:
            self.enter(stage)
        report = verify()
        self.tell(f"auditor: {len(report.violations)} violations, {len(report.unchecked)} not checked")
        return report

    def begin(self) -> None:
        """Void what was handed out before the restore, and anchor that this is a restore."""
        folder = place.known()
        facts: dict[str, int] = {}
        for anchor in folder.anchors:
            facts |= {name: max(value, facts.get(name, 0)) for name, value in anchor.facts.items()}
        for bump in _epochs:
            self.tell(bump(facts))
        lost = self._what_is_lost()
        if folder.last is not None:
            try:
                take(restored_to=lost, tell=self.tell)
            except (
                NotHandedOver
            ) as fault:  # whoever keeps anchors may be away; this control plane must come back
                self.tell(f"  by hand: {fault}")

    def enter(self, stage: str) -> None:
        """One stage. Raises `StageOutOfOrder` unless all before it are done."""
        if STAGES[len(self.done) : len(self.done) + 1] != (stage,):
            wanted = STAGES[len(self.done)] if len(self.done) < len(STAGES) else "none any more"
            raise StageOutOfOrder(f"The next stage is {wanted}, not {stage}.")
        if stage == "journal":
            self._require_sound_journal()
        moved = sum(self._bring_up(repair) for repair in repairs_of(stage))
        if stage == "outbox":
            self.tell(f"outbox: {send_again(self.leave)} undelivered events are due at once")
        else:
            self.tell(f"{stage}: {moved} rows lagged behind the journal and were brought up to it")
        if stage == LAST_OF_ROWS:
            self._once_more()
        self.done.append(stage)
        for title, act in _after[stage]:
            self.tell(f"{title}: {act(self.leave)}")

    def _once_more(self) -> None:
        """Bring up again what rests on later rows, such as the answer that a step waited for."""
        moved = sum(self._bring_up(repair, last=True) for each in STAGES for repair in repairs_of(each))
        if moved:
            self.tell(f"once more: {moved} rows followed those")

    def leave(self, what: str) -> None:
        """Note what a person has to do; the recovery goes on, and ends by saying that it is not whole."""
        self.left.append(what)
        self.tell(f"  by hand: {what}")

    def _require_sound_journal(self) -> None:
        broken = audit_all(SOUND)
        if broken and not self.force:
            first = "; ".join(f"{v.code} {v.subject}: {v.detail}" for v in broken[:3])
            raise RecoveryRefused(f"The journal itself is broken: {first}. Restore another backup.")

    def _what_is_lost(self) -> datetime | None:
        """The time that the database was put back to, if its anchors say that it was."""
        with snapshot() as cursor:
            found = compare(cursor, place.known())
            newest, _ = counting.newest(cursor)
        if not found:
            return None
        if self.restored_to is not None:
            return self._stated(self.restored_to)
        if {f.kind for f in found} == {"restored"} and newest is not None:
            self.tell(found[0].detail)
            end: datetime = newest
            return end
        told = "; ".join(f"{f.subject}: {f.detail}" for f in found[:3])
        raise RecoveryRefused(
            f"The database contradicts its anchors, and no restore explains it: {told}. If the product ran "
            "after the restore, say with --restored-to which time the database was put back to."
        )

    def _stated(self, to: datetime) -> datetime:
        """The time that a person names. What was anchored after it is excused: no more than was lost."""
        with snapshot() as cursor:
            survived = newest_surviving(cursor, place.known())
            _, at = counting.newest(cursor)
        if survived is not None and to < survived - OVERTAKING:
            raise RecoveryRefused(
                f"The database was not put back to {to.isoformat()}: it still holds an anchored entry of "
                f"{survived.isoformat()}. Name a time from then on: an earlier one would also excuse what "
                "vanished in between, and was not lost by the restore."
            )
        if to > at:
            raise RecoveryRefused(f"{to.isoformat()} is still to come: name the time of the backup.")
        return to

    def _refuse_while_running(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = current_database() "
                "AND application_name LIKE 'factory-%%' AND application_name <> 'factory-command'"
            )
            running = sorted(name for (name,) in cursor.fetchall())
        if running and not self.force:
            raise RecoveryRefused(f"Stop the product first: {', '.join(running)} are connected.")

    def _bring_up(self, repair: Repair, *, last: bool = False) -> int:
        """Move rows, and return how many. What fails may rest on a later stage: only the `last` time a person
        hears."""
        moved, model, alone = 0, repair.model, Bulkhead("recover")
        for tenant, entity, said in rows_behind(model):
            subject = f"{model.lifecycle.entity}:{entity}"

            def tell(fault: Exception, told: str = f"{subject} should be {said}") -> None:
                if last:
                    self.leave(f"{told}, but {why(fault)}")

            with alone.item(subject, tenant, tell=tell):
                moved += replay(system(tenant, "Recovery"), repair=repair, entity_id=entity)
        return moved


def send_again(leave: Leave) -> int:
    """Make every undelivered event due now; how many there are. What was set aside stays with its person."""
    with scanning() as cursor:
        cursor.execute(
            "SELECT tenant_id, count(*) FROM factory_outboxevent "
            "WHERE handled_at IS NULL OR streamed_at IS NULL GROUP BY tenant_id"
        )
        waiting = cursor.fetchall()
    due, alone = 0, Bulkhead("recover")
    for tenant, count in waiting:

        def tell(fault: Exception, told: str = f"undelivered events of {tenant} are not due at once") -> None:
            leave(f"{told}: {why(fault)}")

        with alone.item(tenant, tenant, tell=tell):
            _send_again(tenant)
            due += count
    return due


def _send_again(tenant: str) -> None:
    with bound(system(tenant, "Recovery")), connection.cursor() as update:
        update.execute(
            "UPDATE factory_outboxevent SET handle_due_at = NULL, stream_due_at = NULL "
            "WHERE (handled_at IS NULL OR streamed_at IS NULL) "
            "AND (handle_due_at IS NOT NULL OR stream_due_at IS NOT NULL)"
        )
