"""Put the first page together, of what each part of the control plane declares."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeVar

from django.http import HttpRequest

from factory.console.charts import Plot
from factory.console.show import span
from factory.kernel import clock
from factory.kernel.context import Context
from factory.kernel.tenancy import reading

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
Tone = Literal["plain", "good", "busy", "wait", "doubt", "bad"]
MOST = 99
"""No number of what waits is counted beyond this: it reads 99+."""
SHOWN = 12


@dataclass(frozen=True, slots=True)
class CardLine:
    """One line of a card: what it is, where it leads, and what is remarkable about it."""

    title: str
    url: str = ""
    state: str = ""
    tone: Tone = "plain"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """A part of the first page; `empty` says what would stand there."""

    title: str
    items: tuple[CardLine, ...] = ()
    empty: str = ""
    more_url: str = ""
    more_label: str = ""
    needs_you: bool = False
    aside: bool = False
    """Whether it stands beside the list of what is needed, or below with the others."""
    figures: tuple[tuple[str, str], ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that this person has to do. `ends_at` is when it is too late, if that is ever."""

    title: str
    url: str
    state: str
    tone: Tone
    action: str
    since: datetime
    ends_at: datetime | None = None
    klass: str = ""
    where: str = ""
    uncertain: bool = False


@dataclass(frozen=True, slots=True)
class Needs:
    """The things of one kind. `well` says in a few words that there are none: "no event is set aside"."""

    items: tuple[Need, ...]
    count: int
    well: str
    more_url: str = ""
    more_label: str = ""


@dataclass(frozen=True, slots=True)
class FigureShare:
    """A part of a figure's bar; its word stands below it."""

    tone: str
    count: int
    word: str


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of the control plane's state, with a sentence; `alarm` is said at the top of the page."""

    label: str
    value: str
    note: str = ""
    unit: str = ""
    shares: tuple[FigureShare, ...] = ()
    url: str = ""
    alarm: str = ""
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Table:
    """Hold the same figures as a chart's, to be read."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart says what it found, in a sentence; without a plot, `empty` says what would be there."""

    key: str
    title: str
    finding: str
    plot: Plot | None = None
    legend: tuple[tuple[str, str], ...] = ()
    table: Table | None = None
    empty: str = ""
    empty_title: str = "Nothing to draw yet"
    follows_span: bool = True


Span = Literal["hours", "days"]
"""How far charts over time look back: the last 24 hours by the hour, or the last 14 days by the day."""


@dataclass(frozen=True, slots=True)
class Window:
    """A bounded time in equal slots, in UTC; the last slot is the one that is not over yet."""

    span: Span
    start: datetime
    end: datetime
    slots: int

    @property
    def words(self) -> str:
        return "last 24 hours" if self.span == "hours" else "last 14 days"

    @property
    def names(self) -> list[str]:
        """Return what each slot is called in words."""
        form = "%H:%M UTC" if self.span == "hours" else "%d %b"
        return [begin.strftime(form) for begin in self._begins()]

    @property
    def marks(self) -> list[str]:
        """Return what stands below the axis: only so many that they do not touch on a phone."""
        if self.span == "hours":
            return [f"{b:%H:%M}" if b.hour % 6 == 0 else "" for b in self._begins()]
        return [f"{b:%d %b}" if n % 4 == 0 else "" for n, b in enumerate(self._begins())]

    def _begins(self) -> list[datetime]:
        long = (self.end - self.start) / self.slots
        return [self.start + n * long for n in range(self.slots)]


def window(since: Span, at: datetime) -> Window:
    """The window that ends with the hour, or the day, that `at` lies in."""
    moment = at.astimezone(UTC)
    if since == "hours":
        end = moment.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        return Window(since, end - timedelta(hours=24), end, 24)
    end = moment.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return Window(since, end - timedelta(days=14), end, 14)


@dataclass(frozen=True, slots=True)
class DashboardQuery:
    """Hold who looks at the first page, when, and how far back; with the counts of the side bar."""

    ctx: Context
    at: datetime
    counts: Mapping[str, int]
    window: Window
    _answers: dict[Callable[..., Any], Any] = field(default_factory=dict)

    def once(self, ask: Callable[[Context], T]) -> T:
        """Ask once for what several parts of the page want to know."""
        if ask not in self._answers:
            self._answers[ask] = ask(self.ctx)
        answer: T = self._answers[ask]
        return answer


CardFill = Callable[[Context], Card | None]
NeedsFill = Callable[[DashboardQuery], Needs | None]
FigureFill = Callable[[DashboardQuery], Figure | None]
ChartFill = Callable[[DashboardQuery], Chart | None]
CountFill = Callable[[Context], int | None]

_cards: list[tuple[int, CardFill]] = []
_needs: list[tuple[int, NeedsFill]] = []
_figures: list[tuple[int, FigureFill]] = []
_charts: list[tuple[int, ChartFill]] = []
_counts: dict[str, CountFill] = {}


def card(order: int) -> Callable[[CardFill], CardFill]:
    """Declare a card of the first page. It is filled inside a reading transaction; None leaves it out."""
    return _declared(_cards, order)


def needs(order: int) -> Callable[[NeedsFill], NeedsFill]:
    """Declare a kind of things that somebody has to do."""
    return _declared(_needs, order)


def figure(order: int) -> Callable[[FigureFill], FigureFill]:
    """Declare a figure of the state of the control plane."""
    return _declared(_figures, order)


def chart(order: int) -> Callable[[ChartFill], ChartFill]:
    """Declare a chart; its queries are aggregates over bounded time, by an index."""
    return _declared(_charts, order)


def _declared(where: list[tuple[int, F]], order: int) -> Callable[[F], F]:
    def declare(fill: F) -> F:
        where.append((order, fill))
        where.sort(key=lambda each: each[0])
        return fill

    return declare


def count(name: str) -> Callable[[CountFill], CountFill]:
    """Declare a number beside an entry of the side bar: what waits for this person, at most `MOST` + 1."""

    def declare(fill: CountFill) -> CountFill:
        _counts[name] = fill
        return fill

    return declare


def counts_of(request: HttpRequest) -> dict[str, int]:
    """The numbers of the side bar, asked for once a request; nothing for who is a member of nothing."""
    known: dict[str, int] | None = getattr(request, "waiting_counts", None)
    ctx: Context | None = getattr(request, "context", None)
    if known is None:
        known = {}
        if ctx is not None:
            with reading(ctx):
                found = {name: fill(ctx) for name, fill in _counts.items()}
            known = {name: number for name, number in found.items() if number}
        request.waiting_counts = known  # type: ignore[attr-defined]
    return known


def number(value: int) -> str:
    """A bounded number for reading."""
    return f"{MOST}+" if value > MOST else str(value)


@dataclass(frozen=True, slots=True)
class FirstPage:
    """Everything that the template shows, in order."""

    title: str
    lead: str
    needs: Sequence[Need]
    more: Sequence[Needs]
    well: str
    figures: Sequence[Figure]
    asides: Sequence[Card]
    cards: Sequence[Card]
    charts: Sequence[Chart]
    span: Span
    now: datetime


def first_page(
    request: HttpRequest, ctx: Context, where: str, since: Span, *, drawn: bool = True
) -> FirstPage:
    """The first page for this person, read in one transaction; without the charts if it is not `drawn`."""
    with reading(ctx):
        at = clock.now()
        look = DashboardQuery(ctx, at, counts_of(request), window(since, at))
        kinds = _filled(fill(look) for _, fill in _needs)
        figures = _filled(fill(look) for _, fill in _figures)
        cards = _filled(fill(ctx) for _, fill in _cards)
        charts = _filled(fill(look) for _, fill in _charts) if drawn else []
    items = sorted((item for kind in kinds for item in kind.items), key=_urgency)
    total = sum(kind.count for kind in kinds)
    return FirstPage(
        title=title_of(total, where),
        lead=lead_of(items, kinds, figures, at),
        needs=items[:SHOWN],
        more=[kind for kind in kinds if kind.count > _shown_of(kind, items[:SHOWN]) and kind.more_url],
        well=well_of(kinds),
        figures=figures,
        asides=[each for each in cards if each.aside],
        cards=[each for each in cards if not each.aside],
        charts=charts,
        span=since,
        now=at,
    )


def _filled(found: Iterable[T | None]) -> list[T]:
    return [each for each in found if each is not None]


def _urgency(item: Need) -> tuple[bool, bool, datetime]:
    """Return what is uncertain first, then by the time left, then what has no end, oldest first."""
    return (not item.uncertain, item.ends_at is None, item.ends_at or item.since)


def _shown_of(kind: Needs, shown: Sequence[Need]) -> int:
    return sum(item in shown for item in kind.items)


WORDS = [
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]


def in_words(many: int) -> str:
    """A number as a sentence begins with it."""
    if many > MOST:
        return f"More than {MOST}"
    return WORDS[many].capitalize() if many < len(WORDS) else str(many)


def title_of(total: int, where: str) -> str:
    """Return what the page is about, in one line."""
    if not total:
        return f"Nothing needs you in {where}"
    things, need = ("thing", "needs") if total == 1 else ("things", "need")
    return f"{in_words(total)} {things} {need} you in {where}"


def lead_of(items: Sequence[Need], kinds: Sequence[Needs], figures: Sequence[Figure], at: datetime) -> str:
    """Return how long the most urgent can wait, and what is wrong with the control plane."""
    ends = min((item.ends_at for item in items if item.ends_at), default=None)
    said = []
    if ends is not None:
        left = (ends - at).total_seconds()
        said.append(f"The next one ends in {span(left)}." if left > 0 else "The time of one is over.")
    elif items:
        said.append("It has no time limit." if len(items) == 1 else "None of them has a time limit.")
    elif not kinds:
        said.append("Nothing is ever asked of your roles here.")
    said += [each.alarm for each in figures if each.alarm]
    return " ".join(said) or "Whatever asks for a decision of yours will stand here first."


def well_of(kinds: Sequence[Needs]) -> str:
    """Return what there is none of, in one sentence."""
    fine = [kind.well for kind in kinds if kind.well and not kind.count]
    if not fine:
        return ""
    listed = fine[0] if len(fine) == 1 else f"{', '.join(fine[:-1])} and {fine[-1]}"
    return f"{listed[0].upper()}{listed[1:]}."
