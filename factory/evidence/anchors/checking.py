"""Comparing the database with its anchors: what was cut, removed or forged since shows here."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from django.db.backends.utils import CursorWrapper

from factory.evidence.anchors import counting
from factory.evidence.anchors.files import Anchor, Folder, Head, at_of
from factory.evidence.anchors.place import fingerprint, known
from factory.evidence.auditor import check


@dataclass(frozen=True, slots=True)
class AnchorFinding:
    """One contradiction; `kind` says which: cut, gone, rechained, removed, purged-early, counts, restored."""

    kind: str
    tenant: str
    subject: str
    detail: str
    at: str = ""


@dataclass(frozen=True, slots=True)
class Restore:
    """That an anchor states a restore: what was anchored before it and happened after `to` is lost."""

    number: int
    to: datetime

    def excuses(self, anchor: Anchor, at: str) -> bool:
        return anchor.number < self.number and bool(at) and at_of(at) > self.to


def compare(cursor: CursorWrapper, folder: Folder) -> list[AnchorFinding]:
    """All that the database contradicts of these anchors; empty if nothing."""
    if folder.last is None:
        return []
    last = folder.last.anchor
    restores = [Restore(a.number, at_of(a.restored_to)) for a in folder.anchors if a.restored_to]
    found = [f for batch in _batches(folder.every_head()) for f in _differences(cursor, batch, restores)]
    found = _as_restored(cursor, last, found)
    return found or list(_counts(cursor, last))


def newest_surviving(cursor: CursorWrapper, folder: Folder) -> datetime | None:
    """Return when the newest anchored entry that the database still holds was made: before that nothing
    was lost."""
    newest = ""
    for batch in _batches(folder.every_head()):
        for place, hash_, *_ in _compared(cursor, batch):
            head = batch[place][1]
            if hash_ == head.hash:
                newest = max(newest, head.at)
    return at_of(newest) if newest else None


def _batches(heads: Iterator[tuple[Anchor, Head]]) -> Iterator[list[tuple[Anchor, Head]]]:
    while batch := list(islice(heads, 5000)):
        yield batch


_COMPARED = """
SELECT x.place, coalesce(j.hash, a.hash), h.sequence, p.sequence, p.hash,
       p.purged_at - make_interval(days => p.retention_days)
FROM unnest(%s::int[], %s::uuid[], %s::bigint[]) AS x(place, stream_id, sequence)
LEFT JOIN factory_chainhead h ON h.stream_id = x.stream_id
LEFT JOIN factory_journalentry j ON j.stream_id = x.stream_id AND j.sequence = x.sequence
LEFT JOIN factory_auditentry a ON a.stream_id = x.stream_id AND a.sequence = x.sequence
LEFT JOIN LATERAL (
    SELECT sequence, hash, purged_at, retention_days FROM factory_purge
    WHERE stream_id = x.stream_id AND kind <> 'outbox' AND sequence >= x.sequence ORDER BY sequence LIMIT 1
) p ON true
"""


def _compared(cursor: CursorWrapper, batch: Sequence[tuple[Anchor, Head]]) -> list[Any]:
    heads = [head for _, head in batch]
    cursor.execute(
        _COMPARED, [list(range(len(heads))), [h.stream for h in heads], [h.sequence for h in heads]]
    )
    return list(cursor.fetchall())


def _differences(
    cursor: CursorWrapper, batch: Sequence[tuple[Anchor, Head]], restores: Sequence[Restore]
) -> Iterator[AnchorFinding]:
    for place, *seen in _compared(cursor, batch):
        anchor, head = batch[place]
        said = _verdict(head, *seen)
        if said is not None and not any(r.excuses(anchor, head.at) for r in restores):
            kind, detail = said
            text = f"anchor {anchor.number} holds entry {head.sequence}; {detail}"
            yield AnchorFinding(kind, head.tenant, str(head.stream), text, head.at)


def _verdict(
    head: Head,
    hash_: str | None,
    sequence: int | None,
    purged: int | None,
    purge_hash: str | None,
    before: Any,
) -> tuple[str, str] | None:
    """Return what happened to an anchored entry: its kind and a sentence, or None if it is as it was."""
    if hash_ == head.hash:
        return None
    if hash_ is not None:
        return "rechained", "another one is in its place: the chain was written anew"
    if purged is not None:
        if purged == head.sequence and purge_hash != head.hash:
            return "rechained", "what was purged was another one"
        if head.at and at_of(head.at) > before:
            return "purged-early", f"it was of {head.at}, and purged before its time"
        return None
    if sequence is None:
        return "gone", "the whole stream is gone"
    if sequence < head.sequence:
        return "cut", f"the stream ends at {sequence}: its tail was cut off"
    return "removed", "it is not there any more"


def _as_restored(cursor: CursorWrapper, last: Anchor, found: list[AnchorFinding]) -> list[AnchorFinding]:
    """One sentence in place of many, when the database as a whole is older than its last anchor."""
    newest, _ = counting.newest(cursor)
    if not found or not last.newest_at or (newest is not None and newest >= at_of(last.newest_at)):
        return found
    lost = [f for f in found if f.kind in ("cut", "gone") and f.at and (not newest or at_of(f.at) > newest)]
    if not lost:
        return found
    streams = len({f.subject for f in lost})
    text = (
        f"the database ends at {newest}, before the newest entry ({last.newest_at}) of anchor {last.number}: "
        f"it was restored to an earlier time, or its end was cut off; {streams} streams are behind. "
        "After a restore, run `manage.py recover`"
    )
    return [AnchorFinding("restored", "", "database", text), *(f for f in found if f not in lost)]


def _counts(cursor: CursorWrapper, last: Anchor) -> Iterator[AnchorFinding]:
    for kind, count in counting.ever_written(cursor).items():
        if count < last.rows[kind]:
            text = f"anchor {last.number} counted {last.rows[kind]}, there are {count}, and no purge says why"
            yield AnchorFinding("counts", "", kind, text)
    if last.purges:
        cursor.execute("SELECT record_hash FROM factory_purge WHERE number = %s", [last.purges])
        row = cursor.fetchone()
        if row is None or row[0] != last.purge_hash:
            yield AnchorFinding(
                "rechained", "", "purges", f"record {last.purges} is not the one that was anchored"
            )


@check("A7", "Every anchor still matches: no chain was cut, removed or written anew since")
def anchors_match(cursor: CursorWrapper) -> Iterator[tuple[Any, Any, Any]]:
    folder = known()
    for fault in folder.faults:
        yield "", fault.subject, f"{fault.kind}: {fault.detail}"
    yield from _missing_at_the_end(cursor, folder)
    for finding in compare(cursor, folder):
        yield finding.tenant, finding.subject, f"{finding.kind}: {finding.detail}"


def _missing_at_the_end(cursor: CursorWrapper, folder: Folder) -> Iterator[tuple[Any, Any, Any]]:
    """The last verification knew how many anchors there were."""
    cursor.execute(
        "SELECT max(split_part(anchors, ' ', 2)::int) FROM factory_verification WHERE anchors LIKE %s",
        [f"anchor % by {fingerprint() or '?'}"],
    )
    known_before = cursor.fetchone()[0] or 0
    last = folder.last.anchor.number if folder.last else 0
    if known_before > last and not any(str(known_before) in f.subject for f in folder.faults):
        yield "", f"anchors {last + 1} to {known_before}", "missing: an earlier verification knew of them"
