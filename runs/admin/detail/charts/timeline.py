"""The run's timeline as plain shapes, all on one axis of time. Pure: no query, no HTML."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from factory.console.show import tone

MOST_MARKS = 6
ROOM = 28
"""Per cent of the axis that the words at its begin and its end take, on a small screen too."""
THINNEST = 0.5
"""Per cent of the axis: what was very short is still seen."""
_STEPS = tuple(
    timedelta(seconds=seconds)
    for seconds in (
        *(1, 2, 5, 10, 15, 30),
        *(60 * m for m in (1, 2, 5, 10, 15, 30)),
        *(3600 * h for h in (1, 2, 3, 6, 12)),
        *(86_400 * d for d in (1, 2, 7, 14, 30)),
    )
)
TONES_OF_BARS = ("good", "busy", "wait", "doubt", "bad", "plain")
SAID = {
    "Waits for a worker": "waiting for a worker",
    "Waiting": "waiting for a worker",
    "WaitingForApproval": "waiting for people",
    "Cancelling": "stopping",
    "TimedOut": "timed out",
}
"""What a legend says of the states of bars that it does not say as they are."""
DRAWN = {
    "parked": "parked: no worker is held",
    "tail": "until an Operator settles it",
    "lease": "a worker's lease, or the offer of one",
    "question": "a question to people, from asked to closed",
    "use": "an approval was used",
}
"""What a legend says of each other kind of mark."""
GOES_ON = {"question": "a question to people, from asked to closed, or until now"}
"""What it says instead where one of the kind goes on."""


@dataclass(frozen=True, slots=True)
class Span:
    """Something that lasted: a state, an attempt, a lease, a question. Without an end it goes on."""

    label: str
    state: str
    start: datetime
    end: datetime | None
    kind: str = "bar"


@dataclass(frozen=True, slots=True)
class AxisSpan:
    """A span in per cent of the axis."""

    kind: str
    state: str
    tone: str
    left: float
    width: float
    words: str
    goes_on: bool
    """Whether it has no end yet: then nothing is drawn at its end."""


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One line of the timeline."""

    title: str
    state: str
    bars: tuple[AxisSpan, ...]


@dataclass(frozen=True, slots=True)
class Sign:
    """A line of the legend."""

    kind: str
    tone: str
    words: str
    goes_on: bool = False
    """Whether all of its kind do."""


@dataclass(frozen=True, slots=True)
class TimelineChart:
    """Rows on one axis, the axis' marks as (per cent, words), and what its signs mean."""

    rows: tuple[TimelineRow, ...]
    marks: tuple[tuple[float, str], ...]
    signs: tuple[Sign, ...]


def draw_timeline(
    lines: Iterable[tuple[str, str, Sequence[Span]]], start: datetime, end: datetime
) -> TimelineChart:
    """All lines on the axis from `start` to `end`; what has not ended reaches to its end."""
    whole = max((end - start).total_seconds(), 0.001)

    def bar(span: Span) -> AxisSpan:
        until = min(span.end or end, end)
        left = 100 * (span.start - start).total_seconds() / whole
        width = 100 * (until - span.start).total_seconds() / whole
        words = f"{span.label}: {span.state}, {_times(span)}"
        left = min(max(left, 0), 100 - THINNEST)
        width = min(max(width, THINNEST), 100 - left)
        place = round(left, 2), round(width, 2)
        return AxisSpan(span.kind, span.state, tone(span.state), *place, words, goes_on=span.end is None)

    rows = tuple(TimelineRow(title, state, tuple(bar(s) for s in spans)) for title, state, spans in lines)
    return TimelineChart(rows, tuple(_marks(start, end)), _signs(rows))


def _times(span: Span) -> str:
    if span.kind == "use":
        return clock_words(span.start)
    return f"{clock_words(span.start)} to {clock_words(span.end) if span.end else 'now'}"


def _marks(start: datetime, end: datetime) -> Iterable[tuple[float, str]]:
    """Its begin and its end, and between them the round times that have room."""
    whole = max(end - start, timedelta(milliseconds=1))
    step = next((s for s in _STEPS if whole / s <= MOST_MARKS), whole / MOST_MARKS)
    origin = datetime(2000, 1, 1, tzinfo=UTC)
    at = origin + -(-(start - origin) // step) * step
    yield 0, _edge_words(start, whole)
    while at <= end:
        place = round(100 * ((at - start) / whole), 2)
        if ROOM < place < 100 - ROOM:
            yield place, _mark_words(at, step, whole)
        at += step
    yield 100, _edge_words(end, whole)


def _edge_words(at: datetime, whole: timedelta) -> str:
    """As fine as the axis is long: of a second, the begin and the end are told apart too."""
    if whole > timedelta(days=1):
        return at.astimezone(UTC).strftime("%d %b %H:%M")
    told = clock_words(at)
    return told if whole > timedelta(seconds=2) else f"{told}.{at.microsecond // 1000:03d}"


def _mark_words(at: datetime, step: timedelta, whole: timedelta) -> str:
    if step >= timedelta(days=1):
        return at.strftime("%d %b")
    if whole > timedelta(days=1):
        return at.strftime("%d %b %H:%M")
    return at.strftime("%H:%M:%S" if step < timedelta(minutes=1) else "%H:%M")


def _signs(rows: Iterable[TimelineRow]) -> tuple[Sign, ...]:
    """Nothing but what is drawn; of the bars each colour once, with all that it stands for here."""
    bars = [bar for row in rows for bar in row.bars]
    states = {bar.state: bar.tone for bar in bars if bar.kind == "bar"}
    said = {kind: _said(state for state, own in states.items() if own == kind) for kind in TONES_OF_BARS}
    return (
        *(Sign("bar", kind, words) for kind, words in said.items() if words),
        *(_sign(kind, alike) for kind in DRAWN if (alike := [bar for bar in bars if bar.kind == kind])),
    )


def _sign(kind: str, bars: Sequence[AxisSpan]) -> Sign:
    """The sign of one kind of mark, as these are drawn."""
    open_ = [bar for bar in bars if bar.goes_on]
    words = GOES_ON.get(kind, DRAWN[kind]) if open_ else DRAWN[kind]
    return Sign(kind, bars[-1].tone, words, goes_on=len(open_) == len(bars))


def _said(states: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(SAID.get(state, state.lower()) for state in states))


def clock_words(at: datetime) -> str:
    """A time of day in UTC."""
    return at.astimezone(UTC).strftime("%H:%M:%S")
