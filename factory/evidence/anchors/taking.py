"""Taking an anchor: one snapshot of all heads, compared with the anchors before, signed and put away."""

import subprocess
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import structlog
from django.conf import settings
from django.db.backends.utils import CursorWrapper

from factory.embedded.system import locked
from factory.evidence.anchors import counting, files
from factory.evidence.anchors.checking import AnchorFinding, compare
from factory.evidence.anchors.files import FULL_EVERY, Anchor, Folder, Head, Merkle
from factory.evidence.anchors.place import folder, key_file, known
from factory.evidence.auditor import snapshot, streamed
from factory.kernel.chain import stamp

log = structlog.get_logger("factory.evidence.anchors")

_facts: dict[str, str] = {}


def anchored_fact(name: str, query: str) -> None:
    """Declare a number that anchors keep besides the chains, as the one value of a query of the auditor."""
    _facts[name] = query


class Contradicted(RuntimeError):
    """The database is not what the anchors say: to anchor it now would cover up what happened."""

    def __init__(self, findings: list[AnchorFinding]) -> None:
        super().__init__("; ".join(f"{f.subject}: {f.detail}" for f in findings[:5]))
        self.findings = findings


class NotHandedOver(RuntimeError):
    """The anchor is taken, but the command that keeps it elsewhere failed. It gets it again with the next."""


def take(*, restored_to: datetime | None = None, tell: Callable[[str], object] = log.info) -> Anchor:
    """Take the next anchor, and hand it to the command of `FACTORY_ANCHOR_COMMAND` if there is one.

    `restored_to` says that the database was put back to that time; what was anchored after it is then known
    to be lost. Raises `Contradicted` when the database contradicts an earlier anchor without such a reason,
    and `NotHandedOver` when the anchor stands, but only here.
    """
    place = folder()
    place.mkdir(parents=True, exist_ok=True)
    with locked(place / ".lock"):
        before = known()
        with snapshot() as cursor:
            anchor = _now(cursor, before, restored_to)
            if restored_to is None:
                findings = compare(cursor, before)
                if findings:
                    raise Contradicted(findings)
        key = files.signing_key(key_file())
        file = files.write(place, anchor, key)
        public = place / "public-key.pem"
        if not public.exists():
            public.write_text(files.public_pem(key))
        tell(f"anchor {anchor.number}: {anchor.streams} streams, {len(anchor.heads)} heads in {file.name}")
        _hand_over(place)
    return anchor


def _now(cursor: CursorWrapper, before: Folder, restored_to: datetime | None) -> Anchor:
    last, state, tree = before.last, before.heads, Merkle()
    highest = max([files.number_of(f) for f in folder().glob(files.PATTERN)], default=0)
    full = last is None or restored_to is not None or bool(before.faults) or (highest + 1) % FULL_EVERY == 1
    changed = []
    for batch in streamed(cursor, _HEADS):
        for stream, tenant, sequence, hash_, at in batch:
            tree.add(stream, sequence, hash_)
            old = state.get(stream)
            if full or old is None or (old.sequence, old.hash) != (sequence, hash_):
                changed.append(Head(stream, tenant, sequence, hash_, stamp(at) if at else ""))
    newest_at, at = counting.newest(cursor)
    purges, purge_hash = counting.last_purge(cursor)
    return Anchor(
        number=highest + 1, previous=last.hash if last else "", taken_at=stamp(at),
        newest_at=stamp(newest_at) if newest_at else "", full=full, streams=tree.count, heads=changed,
        root=tree.root, rows=counting.ever_written(cursor), purges=purges, purge_hash=purge_hash,
        restored_to=stamp(restored_to) if restored_to else "",
        facts={name: counting.one(cursor, query) for name, query in sorted(_facts.items())},
    )  # fmt: skip


_HEADS = """
SELECT h.stream_id, h.tenant_id, h.sequence, h.hash, coalesce(j.occurred_at, a.occurred_at)
FROM factory_chainhead h
LEFT JOIN factory_journalentry j ON j.stream_id = h.stream_id AND j.sequence = h.sequence
LEFT JOIN factory_auditentry a ON a.stream_id = h.stream_id AND a.sequence = h.sequence
ORDER BY h.stream_id
"""


def _hand_over(place: Path) -> None:
    """Give each file to whoever keeps it elsewhere: an upload to a locked bucket, a commit, a mail.

    The last one that was given is noted in the folder, so that none is left out when this fails or is killed.
    """
    command, mark = settings.FACTORY_ANCHOR_COMMAND, place / ".handed-over"
    given = int(mark.read_text()) if mark.exists() else 0
    for file in sorted(place.glob(files.PATTERN)) if command else ():
        if files.number_of(file) > given:
            try:
                subprocess.run([*command, str(file)], check=True, timeout=300, stdin=subprocess.DEVNULL)
            except (OSError, subprocess.SubprocessError) as fault:
                raise NotHandedOver(f"{file.name} is taken, but {command[0]} failed: {fault}") from fault
            draft = mark.with_suffix(".new")
            draft.write_text(str(files.number_of(file)))
            draft.replace(mark)
