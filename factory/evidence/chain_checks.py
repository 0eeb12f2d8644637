"""Whether one chain holds, recomputed from its stored rows as `manage.py verify` does for all of them."""

from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from factory.kernel.chain import AUDIT_CONTENT, JOURNAL_CONTENT, chained, content_of
from factory.kernel.errors import InvalidInput
from factory.kernel.hashing import canonical
from factory.kernel.models import AuditEntry, ChainHead, JournalEntry, Purge

Kind = Literal["journal", "audit"]
_LOGS: dict[str, tuple[type[JournalEntry] | type[AuditEntry], tuple[str, ...]]] = {
    "journal": (JournalEntry, JOURNAL_CONTENT),
    "audit": (AuditEntry, AUDIT_CONTENT),
}
MOST = 2000
"""So many entries are recomputed while somebody waits for a page: the newest of the chain."""


@dataclass(frozen=True, slots=True)
class Checked:
    """Hold what came of it: from which entry to which, and the first fault, if there is one."""

    first: int
    last: int
    fault: str = ""

    @property
    def holds(self) -> bool:
        return not self.fault

    @property
    def words(self) -> str:
        """The result as one sentence."""
        if self.fault:
            return f"Broken: {self.fault}. Do not rely on it; run manage.py verify."
        if self.last == 0:
            return "Nothing has been written yet."
        if self.first == 1:
            if self.last == 1:
                return "Intact: its one entry, recomputed just now."
            return f"Intact: {self.last} entries, gapless, recomputed from the first to the last just now."
        return f"Intact: entries {self.first} to {self.last}, gapless, recomputed just now."


def check_chain(kind: Kind, stream: UUID) -> Checked:
    """Recompute the newest entries of a chain of the tenant, up to its head.

    What went before them, because there are more than `MOST` or because it was purged, is taken at its
    word: the auditor checks all of it.
    """
    model, columns = _LOGS[kind]
    found = model.objects.filter(stream_id=stream).order_by("-sequence")
    rows = list(found.values(*columns, "prev_hash", "hash")[:MOST])[::-1]
    head = ChainHead.objects.filter(stream_id=stream).first()
    if not rows:
        return Checked(0, 0, _missing(kind, stream, head))
    first, last = rows[0]["sequence"], rows[-1]["sequence"]
    fault = first_fault(rows, columns)
    if not fault and (head is None or head.hash != rows[-1]["hash"]):
        fault = f"entry {last} is not the one that the chain's head holds"
    return Checked(first, last, fault)


def _missing(kind: Kind, stream: UUID, head: ChainHead | None) -> str:
    purged = Purge.objects.filter(stream_id=stream, kind=kind).exists()
    return "its entries are missing" if head is not None and head.sequence and not purged else ""


def first_fault(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> str:
    """Return what is wrong with these entries of a chain, in their order; empty when each follows from the
    last."""
    before = {"sequence": rows[0]["sequence"] - 1, "hash": rows[0]["prev_hash"]}
    if before["sequence"] == 0 and before["hash"]:
        return "its first entry follows from another"
    for row in rows:
        if row["sequence"] != before["sequence"] + 1:
            return f"entry {before['sequence'] + 1} is missing"
        if row["prev_hash"] != before["hash"]:
            return f"entry {row['sequence']} does not follow from the one before"
        if not _is_covered(row, columns):
            return f"the content of entry {row['sequence']} is not what its hash covers"
        before = row
    return ""


def _is_covered(row: dict[str, Any], columns: tuple[str, ...]) -> bool:
    try:
        return bool(row["hash"] == chained(row["prev_hash"], canonical(content_of(row, columns))))
    except InvalidInput:  # what has no canonical form was never hashed
        return False
