"""Charts as plain shapes for inline SVG. Pure: no query, no HTML. Across is in per cent, down in pixels."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log10

HEIGHT, TOP, BOTTOM = 190, 18, 24
FLOOR = HEIGHT - BOTTOM
DOT, RING = 3.5, 6.0
"""The radius of a dot, and of one that lies behind another."""
ROW, BAR = 34, 11
"""A row of pairs of bars, and the thickness of one of its bars."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle and what it says when it is pointed at."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    words: str


@dataclass(frozen=True, slots=True)
class Label:
    """Words at a place: `x` in per cent, `y` in pixels."""

    x: float
    y: float
    words: str
    anchor: str = "middle"
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of a line in a space of 100 by the plot's height; `area` fills what is below it."""

    points: str
    kind: str
    dashed: bool = False
    area: str = ""


@dataclass(frozen=True, slots=True)
class Dot:
    """One measured value on a curve."""

    x: float
    y: float
    kind: str
    words: str
    radius: float = DOT


@dataclass(frozen=True, slots=True)
class Plot:
    """The whole drawing. `across` are the marks of the axis below, `up` those at the left."""

    height: int = HEIGHT
    bars: tuple[Bar, ...] = ()
    curves: tuple[Curve, ...] = ()
    dots: tuple[Dot, ...] = ()
    across: tuple[Label, ...] = ()
    up: tuple[Label, ...] = ()
    labels: tuple[Label, ...] = ()
    margin: int = 40


@dataclass(frozen=True, slots=True)
class ColumnPart:
    """A part of a column: its kind, its word, how many."""

    kind: str
    word: str
    count: int
    named: bool = False
    """Whether its number stands above the column: for what one has to see."""


@dataclass(frozen=True, slots=True)
class ChartColumn:
    """One slot of the axis; `mark` is what stands below it, if anything."""

    name: str
    parts: tuple[ColumnPart, ...]
    mark: str = ""


def steps(most: float, count: int = 4) -> list[float]:
    """Round marks of an axis from 0 to `most` or just above it: 1, 2 or 5 times a power of ten apart."""
    if most <= 0:
        return [0, 1]
    raw = most / count
    power = 10 ** (ceil(log10(raw)) - 1)
    step = next(power * n for n in (1, 2, 5, 10) if power * n >= raw * 0.999)
    return [step * n for n in range(ceil(most / step - 0.001) + 1)]


def height_of(value: float, most: float) -> float:
    """Return how far above the floor a value stands."""
    return round((FLOOR - TOP) * value / most, 1) if most else 0.0


def _marks(values: Sequence[float], words: Sequence[str]) -> tuple[Label, ...]:
    return tuple(
        Label(0, FLOOR - height_of(value, values[-1]), word, "end")
        for value, word in zip(values, words, strict=True)
    )


def stacked(columns: Sequence[ChartColumn]) -> Plot:
    """Columns of whole numbers, one part upon another."""
    most = max((sum(part.count for part in column.parts) for column in columns), default=0)
    values = [value for value in steps(most) if value == int(value)]
    slot = 100 / max(len(columns), 1)
    bars: list[Bar] = []
    labels: list[Label] = []
    for place, column in enumerate(columns):
        left, top = place * slot, float(FLOOR)
        for part in (part for part in column.parts if part.count):
            high = height_of(part.count, values[-1])
            top -= high
            words = f"{column.name}: {part.count} {part.word}"
            bars.append(
                Bar(
                    _at(left + slot * 0.12),
                    round(top, 1),
                    _at(slot * 0.76),
                    max(high - 1, 1),
                    part.kind,
                    words,
                )
            )
        told = sum(part.count for part in column.parts if part.named)
        if told:
            kind = next(part.kind for part in column.parts if part.named and part.count)
            labels.append(Label(_at(left + slot / 2), round(top - 5, 1), f"{told:,}", "middle", kind))
    across = tuple(
        Label(_at((place + 0.5) * slot), HEIGHT - 6, column.mark)
        for place, column in enumerate(columns)
        if column.mark
    )
    up = _marks(values, [f"{value:,.0f}" for value in values])
    return Plot(bars=tuple(bars), across=across, up=up, labels=tuple(labels))


@dataclass(frozen=True, slots=True)
class ColumnAmount:
    """A column that is one amount: its slot, how much, and what it says when it is pointed at."""

    name: str
    value: float
    words: str
    kind: str = ""


def amounts(columns: Sequence[ColumnAmount], marks: Sequence[str]) -> Plot:
    """Columns of amounts of money or of other things that are not whole; `marks` stand below the axis."""
    values = steps(max((column.value for column in columns), default=0))
    slot = 100 / max(len(columns), 1)
    bars = []
    for place, column in enumerate(columns):
        high = height_of(column.value, values[-1])
        if column.value > 0:
            left, wide = _at((place + 0.12) * slot), _at(slot * 0.76)
            top, kind = round(FLOOR - max(high, 1), 1), column.kind or "busy"
            bars.append(Bar(left, top, wide, max(high, 1), kind, column.words))
    across = tuple(
        Label(_at((place + 0.5) * slot), HEIGHT - 6, mark, "start" if place == 0 and slot < 8 else "middle")
        for place, mark in enumerate(marks)
        if mark
    )
    up = _marks(values, [f"{value:.10g}" for value in values])
    return Plot(bars=tuple(bars), across=across, up=up, margin=52)


@dataclass(frozen=True, slots=True)
class Series:
    """Values along the axis; None where nothing was measured."""

    kind: str
    word: str
    values: tuple[float | None, ...]


def curves(
    series: Sequence[Series], names: Sequence[str], marks: Sequence[str], values: Sequence[tuple[float, str]],
    words: Sequence[Sequence[str]],
) -> Plot:  # fmt: skip
    """Lines over slots, broken where nothing was measured. `values` are the marks at the left with their
    words, `words` what each point of each series says. The first series lies on the others: where its
    points hide theirs, those are seen as rings around its own."""
    slot, most = 100 / max(len(names), 1), values[-1][0]
    drawn: list[Curve] = []
    dots: list[Dot] = []
    for rank in reversed(range(len(series))):
        one, told, ahead = series[rank], words[rank], series[:rank]
        places = [
            None
            if value is None
            else (_at((n + 0.5) * slot), round(FLOOR - height_of(min(value, most), most), 1))
            for n, value in enumerate(one.values)
        ]
        drawn += [Curve(_points(piece), one.kind) for piece in _pieces(places) if len(piece) > 1]
        dots += [
            Dot(
                *place,
                one.kind,
                f"{name}: {one.word} {word}",
                RING if any(_is_hidden(one.values[n], each.values[n], most) for each in ahead) else DOT,
            )
            for n, (place, name, word) in enumerate(zip(places, names, told, strict=True))
            if place is not None
        ]
    across = tuple(Label(_at((n + 0.5) * slot), HEIGHT - 6, mark) for n, mark in enumerate(marks) if mark)
    up = _marks([value for value, _ in values], [word for _, word in values])
    return Plot(curves=tuple(drawn), dots=tuple(dots), across=across, up=up, margin=52)


def _is_hidden(value: float | None, before: float | None, most: float) -> bool:
    """Tell whether the dot of a value lies under the one of another that is drawn later."""
    if value is None or before is None:
        return False
    return abs(height_of(min(value, most), most) - height_of(min(before, most), most)) < DOT


def _pieces(places: Sequence[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    found: list[list[tuple[float, float]]] = [[]]
    for place in places:
        if place is None:
            found.append([])
        else:
            found[-1].append(place)
    return found


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in places)


def pairs(rows: Sequence[tuple[str, Sequence[ColumnPart]]]) -> Plot:
    """Rows of horizontal bars that lie below one another, each with its number behind it."""
    most = max((part.count for _, parts in rows for part in parts), default=0) or 1
    bars: list[Bar] = []
    names: list[Label] = []
    labels: list[Label] = []
    for place, (name, parts) in enumerate(rows):
        top = place * ROW + 6
        names.append(Label(0, top + 15, name, "start"))
        for line, part in enumerate(parts):
            y, width = top + line * (BAR + 2), max(_at(88 * part.count / most), 0.8)
            if part.count:
                bars.append(Bar(0, y, width, BAR, part.kind, f"{name}: {part.count} {part.word}"))
                labels.append(Label(width, y + BAR - 1, f"{part.count:,}", "start", "after"))
    return Plot(
        height=len(rows) * ROW + 6, bars=tuple(bars), up=tuple(names), labels=tuple(labels), margin=104
    )


def pace(
    sums: Sequence[float], days: int, now: float, limit: float, marks: Sequence[tuple[int, str]]
) -> Plot:
    """Return what was spent by the end of each day so far, below a limit, beside the even way towards it.

    `sums` begins with 0 at the start of the first day; its last stands at `now`, in days from there. `marks`
    are days and their words.
    """
    values = steps(max([limit, *sums]))
    level = [round(FLOOR - height_of(value, values[-1]), 1) for value in sums]
    places = [(_at(100 * min(n, now) / days), y) for n, y in enumerate(level)]
    area = f"{_points(places)} {places[-1][0]:g},{FLOOR} 0,{FLOOR}" if len(places) > 1 else ""
    roof = round(FLOOR - height_of(limit, values[-1]), 1)
    drawn = (
        Curve(f"0,{FLOOR} 100,{roof}", "quote", dashed=True),
        Curve(f"0,{roof} 100,{roof}", "limit"),
        Curve(_points(places), "busy", area=area),
    )
    across = tuple(
        Label(_at(100 * (day - 1) / days), HEIGHT - 6, word, "start" if day == 1 else "middle")
        for day, word in marks
    )
    x, y = places[-1]
    end = Dot(x, y, "busy", "today")
    labels = (
        Label(100, roof - 6, f"budget {limit:.{0 if limit == round(limit) else 2}f}", "end", "strong"),
        Label(62, FLOOR - 0.62 * (FLOOR - roof) - 10, "even pace", "end", "quote"),
    )
    up = _marks(values, [f"{value:.10g}" for value in values])
    return Plot(curves=drawn, dots=(end,), across=across, up=up, labels=labels, margin=52)


def _at(per_cent: float) -> float:
    return round(per_cent, 2)
