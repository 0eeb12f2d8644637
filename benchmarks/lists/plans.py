"""What the database does for a page: blocks that it touches, and what in its plans grows with the tables."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import OperationalError, connection

MANY_ROWS = 5_000
"""A page has fifty rows. What reads so many for it, and throws them away, reads more each year; but for what
a list looks through in its own order, `AT_ONCE` rows of them."""


@dataclass
class Seen:
    """Of all statements of one page: their blocks, their milliseconds, and what is suspicious in each."""

    blocks: int = 0
    ms: float = 0.0
    signs: list[str] = field(default_factory=list)
    statements: list[tuple[float, int, str]] = field(default_factory=list)


class Looking:
    """An execute wrapper that has the database explain each SELECT as it was sent, in its own transaction."""

    def __init__(self) -> None:
        self.seen = Seen()

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not many and sql.lstrip()[:6].upper() in ("SELECT", "WITH n", "WITH R"):
            self._explain(sql, params)
        return execute(sql, params, many, context)

    def _explain(self, sql: str, params: Any) -> None:
        if "set_config(" in sql or "FOR UPDATE" in sql:
            return
        began = time.monotonic()
        try:
            with connection.wrap_database_errors, connection.connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {sql}", params)
                [(told,)] = cursor.fetchall()
        except OperationalError:  # it took longer than the page gave it, as it may in earnest
            ms = 1000 * (time.monotonic() - began)
            self.seen.ms += ms
            self.seen.signs.append(f"no answer in {ms:.0f} ms")
            raise
        [top] = json.loads(told) if isinstance(told, str) else told
        plan = top["Plan"]
        blocks = int(plan.get("Shared Hit Blocks", 0)) + int(plan.get("Shared Read Blocks", 0))
        ms = float(top["Execution Time"]) + float(top["Planning Time"])
        seen = self.seen
        seen.blocks, seen.ms = seen.blocks + blocks, seen.ms + ms
        seen.signs += signs(plan)
        seen.statements.append((ms, blocks, sql))


def signs(plan: Mapping[str, Any]) -> list[str]:
    """What a plan reads in proportion to a table: rows thrown away by a filter, large sorts, whole tables."""
    return [sign for node in _nodes(plan) for sign in _of_node(node)]


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


def _of_node(node: Mapping[str, Any]) -> Iterator[str]:
    kind, loops = node["Node Type"], float(node.get("Actual Loops", 1))
    of = node.get("Index Name") or node.get("Relation Name") or ""
    rows = float(node.get("Actual Rows", 0)) * loops
    lost = sum(
        float(node.get(f"Rows Removed by {by}", 0)) for by in ("Filter", "Join Filter", "Index Recheck")
    )
    if lost * loops > MANY_ROWS:
        yield f"{kind} {of} throws {lost * loops:,.0f} rows away"
    if kind == "Seq Scan" and rows + lost * loops > MANY_ROWS:
        yield f"all of {of} is read"
    if kind in ("Sort", "Incremental Sort", "Bitmap Index Scan", "BitmapAnd") and _below(node) > MANY_ROWS:
        yield f"{kind} {of} of {_below(node):,.0f} rows"


def _below(node: Mapping[str, Any]) -> float:
    inner = node.get("Plans") or [node]
    return max(float(each.get("Actual Rows", 0)) * float(each.get("Actual Loops", 1)) for each in inner)
