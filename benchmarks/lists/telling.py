"""What was measured, for people."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.lists.asking import Measurement

HEADING = f"{'':34}{'asked':>7}{'p95 ms':>8}{'db ms':>7}{'blocks':>8}  slowest question"


def line(one: Measurement) -> str:
    """One question: who, milliseconds, blocks, and what is suspicious."""
    told = (
        f"{one.p95:7.0f} ms{one.seen.ms:7.0f} db{one.seen.blocks:8} blocks  {one.person:17}{one.asked.path}"
    )
    return "\n      ! ".join([told, *dict.fromkeys(one.seen.signs), *([one.fault] if one.fault else [])])


def tell(found: Mapping[str, Sequence[Measurement]], unused: Sequence[tuple[str, str]], most: float) -> int:
    """The table, what is past the limit, and indexes that nothing used. Answers the program's status."""
    print(HEADING)  # noqa: T201  a program's output
    for name, all_of in found.items():
        print(_row(name, all_of))  # noqa: T201
    over = [one for all_of in found.values() for one in all_of if one.fault or one.p95 > most]
    for one in over:
        print(f"over {most:.0f} ms: {line(one)}")  # noqa: T201
    print("No list uses: " + (", ".join(f"{name} ({size})" for name, size in unused) or "all are used"))  # noqa: T201
    return 1 if over else 0


def _row(name: str, all_of: Sequence[Measurement]) -> str:
    slowest = max(all_of, key=lambda one: one.p95)
    blocks = max(one.seen.blocks for one in all_of)
    short = name.removeprefix("/admin/").rstrip("/")
    what = slowest.asked.path.removeprefix(name) or "first page"
    db = max(one.seen.ms for one in all_of)
    return f"{short:34}{len(all_of):7}{slowest.p95:8.0f}{db:7.0f}{blocks:8}  {what[:60]} ({slowest.person})"


def unused_indexes(db: Any) -> list[tuple[str, str]]:
    """Indexes of the large tables that no question has used, with their sizes; unique ones hold a rule."""
    rows = db.execute(
        "SELECT s.indexrelname, pg_size_pretty(pg_relation_size(s.indexrelid)) FROM pg_stat_user_indexes s "
        "JOIN pg_index i USING (indexrelid) WHERE s.idx_scan = 0 AND NOT i.indisunique "
        "AND (SELECT reltuples FROM pg_class WHERE oid = s.relid) > 50000 ORDER BY 1"
    ).fetchall()
    return [(str(name), str(size)) for name, size in rows]
