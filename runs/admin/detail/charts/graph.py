"""The workflow's graph as plain shapes for inline SVG. Pure: no query, no HTML."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 176, 84, 34, 22, 14
CORNER = 6


@dataclass(frozen=True, slots=True)
class NodeLabel:
    """Hold how a node stands: its state, and what is remarkable about it, in few words."""

    state: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Box:
    """A node of the graph at its place, and the keys of what it comes after."""

    key: str
    kind: str
    state: str
    note: str
    after: tuple[str, ...]
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge: an SVG path from a box to one that depends on it."""

    path: str


@dataclass(frozen=True, slots=True)
class Graph:
    """The whole drawing and its size; `boxes` stand in an order in which each comes after its causes."""

    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    width: int
    height: int

    @property
    def is_wide(self) -> bool:
        """Tell whether it is scrolled rather than made smaller: nobody reads a shrunken box."""
        return self.width > 7 * (WIDTH + GAP_X)


def draw_graph(nodes: Sequence[Mapping[str, Any]], told: Mapping[str, NodeLabel]) -> Graph:
    """Nodes in columns by their depth; `told` gives each key how it stands."""
    depth = _depths(nodes)
    columns: dict[int, list[Mapping[str, Any]]] = {}
    for node in nodes:
        columns.setdefault(depth[node["key"]], []).append(node)
    tallest = max((len(column) for column in columns.values()), default=0)
    places: dict[str, Box] = {}
    for level, column in sorted(columns.items()):
        top = (tallest - len(column)) * (HEIGHT + GAP_Y) // 2
        for row, node in enumerate(column):
            x, y = level * (WIDTH + GAP_X) + 2, top + row * (HEIGHT + GAP_Y) + MARGIN
            places[node["key"]] = _box(node, told.get(node["key"], NodeLabel("Not begun")), x, y)
    arrows = tuple(
        Arrow(_path(places[before], places[node["key"]], places.values()))
        for node in nodes
        for before in node.get("dependsOn", ())
    )
    width = max(len(columns) * (WIDTH + GAP_X) - GAP_X, 0) + 6
    height = max(tallest * (HEIGHT + GAP_Y) - GAP_Y, 0) + 2 * MARGIN
    return Graph(tuple(places.values()), arrows, width, height)


def _box(node: Mapping[str, Any], told: NodeLabel, x: int, y: int) -> Box:
    return Box(node["key"], _kind(node), told.state, told.note, tuple(node.get("dependsOn", ())), x, y)


def _kind(node: Mapping[str, Any]) -> str:
    """The second line of a box, which all of it fits into: how far it reaches and what is special."""
    reach = "a person answers" if node.get("kind") == "human" else str(node.get("sideEffectClass", ""))
    marks = [reach, "for each" if "forEach" in node else "", "conditional" if "when" in node else ""]
    return " · ".join(mark for mark in marks if mark)


def _depths(nodes: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many steps lie before each node at the most; the definition has no cycles."""
    before = {node["key"]: list(node.get("dependsOn", ())) for node in nodes}
    depth: dict[str, int] = {}
    while len(depth) < len(before):
        ready = [k for k, deps in before.items() if k not in depth and all(d in depth for d in deps)]
        if not ready:
            raise ValueError("The definition has a cycle.")
        depth |= {k: 1 + max((depth[d] for d in before[k]), default=-1) for k in ready}
    return depth


def _path(start: Box, end: Box, boxes: Iterable[Box]) -> str:
    """Straight where that is free; else through the nearest gap between the rows, never over a box."""
    x1, y1, x2, y2 = start.x + WIDTH, start.y + HEIGHT // 2, end.x - 3, end.y + HEIGHT // 2
    between = [box for box in boxes if x1 < box.x + WIDTH and box.x < end.x]
    if not any(_covers(box, y1) for box in between):
        return f"M{x1} {y1}{_turn(end.x - GAP_X // 2, y1, y2)}H{x2}"
    gaps = [edge for box in between for edge in (box.y - GAP_Y // 2, box.y + HEIGHT + GAP_Y // 2)]
    free = [y for y in gaps if y > 0 and not any(_covers(box, y) for box in between)]
    lane = min(free, key=lambda y: abs(y - (y1 + y2) / 2))
    return f"M{x1} {y1}{_turn(x1 + GAP_X // 2, y1, lane)}{_turn(end.x - GAP_X // 2, lane, y2)}H{x2}"


def _covers(box: Box, y: int) -> bool:
    return box.y - 4 < y < box.y + HEIGHT + 4


def _turn(x: int, y1: int, y2: int) -> str:
    """Along to `x`, and there up or down to `y2`, with rounded corners."""
    if y1 == y2:
        return f"H{x}"
    r = min(CORNER, abs(y2 - y1) // 2)
    way = r if y2 > y1 else -r
    return f"H{x - r}q{r} 0 {r} {way}V{y2 - way}q0 {way} {r} {way}"
