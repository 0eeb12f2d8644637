"""The workflow's graph and the run's timeline as plain shapes for inline SVG. Pure: no query, no HTML."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

WIDTH, HEIGHT, GAP_X, GAP_Y = 190, 92, 36, 18


@dataclass(frozen=True, slots=True)
class Box:
    """A node of the graph at its place."""

    key: str
    side_effect_class: str
    marks: str
    state: str
    note: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge: an SVG path from a box to one that depends on it."""

    path: str


@dataclass(frozen=True, slots=True)
class Graph:
    """The whole drawing and its size."""

    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    width: int
    height: int


def draw_graph(nodes: Sequence[Mapping[str, Any]], states: Mapping[str, tuple[str, str]]) -> Graph:
    """Nodes in columns by their depth; `states` gives each key its state and a note."""
    depth = _depths(nodes)
    columns: dict[int, list[Mapping[str, Any]]] = {}
    for node in nodes:
        columns.setdefault(depth[node["key"]], []).append(node)
    tallest = max((len(column) for column in columns.values()), default=0)
    places: dict[str, Box] = {}
    for level, column in columns.items():
        top = (tallest - len(column)) * (HEIGHT + GAP_Y) // 2
        for row, node in enumerate(column):
            state, note = states.get(node["key"], ("Not begun", ""))
            x, y = level * (WIDTH + GAP_X), top + row * (HEIGHT + GAP_Y)
            reach = str(node.get("sideEffectClass", ""))
            places[node["key"]] = Box(node["key"], reach, _marks(node), state, note, x + 2, y + 2)
    arrows = tuple(
        Arrow(_path(places[before], places[node["key"]]))
        for node in nodes
        for before in node.get("dependsOn", ())
    )
    width = max(len(columns) * (WIDTH + GAP_X) - GAP_X, 0) + 6
    return Graph(tuple(places.values()), arrows, width, max(tallest * (HEIGHT + GAP_Y) - GAP_Y, 0) + 6)


def _marks(node: Mapping[str, Any]) -> str:
    """The third line of a box, which all of it fits into: what is special about the node."""
    marks = ["a person answers" if node.get("kind") == "human" else ""]
    marks += ["for each" if "forEach" in node else "", "conditional" if "when" in node else ""]
    return " · ".join(mark for mark in marks if mark)


def _depths(nodes: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many steps lie before each node at the most; the definition has no cycles."""
    before = {node["key"]: list(node.get("dependsOn", ())) for node in nodes}
    depth: dict[str, int] = {}
    while len(depth) < len(before):
        ready = [k for k, deps in before.items() if k not in depth and all(d in depth for d in deps)]
        if not ready:
            raise ValueError("The definition has a cycle.")
        depth |= {k: 1 + max((depth[d] for d in before[k]), default=-1) for k in ready}
    return depth


def _path(start: Box, end: Box) -> str:
    x1, y1 = start.x + WIDTH, start.y + HEIGHT // 2
    x2, y2 = end.x, end.y + HEIGHT // 2
    middle = x2 - GAP_X // 2
    return f"M{x1} {y1} H{middle} V{y2} H{x2 - 2}"


@dataclass(frozen=True, slots=True)
class Span:
    """Something that lasted: a state of the run, an attempt, a lease, a question."""

    label: str
    state: str
    start: datetime
    end: datetime | None
    kind: str = "bar"


@dataclass(frozen=True, slots=True)
class Bar:
    """A span in per cent of the axis."""

    label: str
    state: str
    kind: str
    left: float
    width: float
    words: str


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the timeline."""

    title: str
    state: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Rows on one axis, and the axis' marks as (per cent, words)."""

    rows: tuple[Row, ...]
    marks: tuple[tuple[float, str], ...]


def draw_timeline(
    lines: Iterable[tuple[str, str, Sequence[Span]]], start: datetime, end: datetime
) -> Timeline:
    """All lines on the axis from `start` to `end`; what has not ended reaches to its end."""
    whole = max((end - start).total_seconds(), 0.001)

    def bar(span: Span) -> Bar:
        until = min(span.end or end, end)
        left = 100 * (span.start - start).total_seconds() / whole
        width = 100 * (until - span.start).total_seconds() / whole
        times = f"{clock_words(span.start)} to {clock_words(span.end) if span.end else 'now'}"
        return Bar(
            span.label, span.state, span.kind, round(max(left, 0), 2), round(max(width, 0.6), 2),
            f"{span.label}: {span.state}, {times}",
        )  # fmt: skip

    rows = tuple(Row(title, state, tuple(bar(s) for s in spans)) for title, state, spans in lines)
    marks = tuple((25.0 * n, clock_words(start + timedelta(seconds=whole * n / 4))) for n in range(5))
    return Timeline(rows, marks)


def clock_words(at: datetime) -> str:
    """A time of day in UTC."""
    return at.astimezone(UTC).strftime("%H:%M:%S")
