"""The usage explorer: what calls cost in a time, by project, workflow, release, model or day."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, StreamingHttpResponse
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.utils.dateparse import parse_date

from factory.console.asking import FORMAT, not_understood
from factory.console.charts import ColumnAmount, amounts
from factory.console.dashboard import Chart, Table
from factory.console.links import names_of
from factory.console.lists.files import sheet
from factory.console.show import seen
from factory.kernel import clock
from factory.kernel.amounts import number, usd
from factory.kernel.context import Context
from usage.admin.detail.charts import share_of
from usage.selectors.exploring import LONGEST, MOST_GROUPS, NOTHING, Explored, Used, explore

PERIODS = (
    ("month", "This month"),
    ("last-month", "Last month"),
    ("7", "Last 7 days"),
    ("30", "Last 30 days"),
    ("own", "Named days"),
)
BY = (("model", "Model or tool"), ("workflow", "Workflow"), ("release", "Release"), ("day", "Day"))
BY_PROJECT = ("project", "Project")
LEADS = {
    "workflow": "A workflow leads to its runs, those of other times too: not to these calls alone.",
    "release": "A release leads to its own page, not to these calls alone.",
    "project": "A project leads to its own page, not to these calls alone.",
}
"""Where the lines lead that do not lead to just the calls behind them."""


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """Hold what was asked for: whole days in UTC, `end` not among them. `trouble` says what could not be
    read."""

    period: str
    by: str
    start: date
    end: date
    trouble: str = ""

    @property
    def last(self) -> date:
        return self.end - timedelta(days=1)

    @property
    def words(self) -> str:
        """The time as people say it."""
        return days_in_words(self.start, self.end)

    @property
    def query(self) -> str:
        """Return the same question as the end of an address, good also tomorrow."""
        return urlencode({"period": "own", "from": self.start, "to": self.last, "by": self.by})


@dataclass(frozen=True, slots=True)
class UsageRow:
    """A line of the table: what it is, where its calls are, its sums, and its share of the known cost."""

    name: str
    url: str
    used: Used
    share: str
    width: float


def days_in_words(start: date, end: date) -> str:
    last = end - timedelta(days=1)
    if start == last:
        return f"{start:%d %b %Y}"
    year = "" if start.year == last.year else f" {start:%Y}"
    return f"{start:%d %b}{year} to {last:%d %b %Y}"


def asked(sent: Any, today: date, *, whole_tenant: bool) -> UsageQuery:
    """The question of a form; what it does not say, or says wrongly, is this month by model."""
    ways = dict([*BY, BY_PROJECT] if whole_tenant else BY)
    by = sent.get("by", "") if sent.get("by", "") in ways else ("project" if whole_tenant else "model")
    period = sent.get("period", "") if sent.get("period", "") in dict(PERIODS) else "month"
    found = _asked(sent, by, period, today)
    odd = [name for name, used in (("by", by), ("period", period)) if sent.get(name, used) not in ("", used)]
    told = [f"“{sent[name][:60]}” is no value of “{name}” in an address." for name in odd]
    return replace(found, trouble=" ".join(filter(None, (*told, found.trouble))))


def _asked(sent: Any, by: str, period: str, today: date) -> UsageQuery:
    month, tomorrow = today.replace(day=1), today + timedelta(days=1)
    if period == "own":
        return _own(by, sent.get("from", ""), sent.get("to", ""), month, tomorrow)
    if period == "last-month":
        return UsageQuery(period, by, (month - timedelta(days=1)).replace(day=1), month)
    if period == "month":
        return UsageQuery(period, by, month, tomorrow)
    return UsageQuery(period, by, tomorrow - timedelta(days=int(period)), tomorrow)


def _own(by: str, first: str, last: str, month: date, tomorrow: date) -> UsageQuery:
    start, until = _day(first), _day(last)
    if start is None or until is None or until < start:
        told = "That is no time: name a first day, and a last one that is not before it."
        return UsageQuery("own", by, month, tomorrow, told)
    end = until + timedelta(days=1)
    if (end - start).days > LONGEST:
        told = f"At most {LONGEST} days are added up at once: those before the last of them are left out."
        return UsageQuery("own", by, end - timedelta(days=LONGEST), end, told)
    return UsageQuery("own", by, start, max(start + timedelta(days=1), min(end, tomorrow)))


def _day(text: str) -> date | None:
    try:
        found = parse_date(text)
    except ValueError:
        return None
    return found if found is not None and 2000 <= found.year < 3000 else None


def explorer(request: HttpRequest, ctx: Context) -> dict[str, Any]:
    """The values of the page, read in the open transaction."""
    wide = ctx.project_id is None
    today = clock.now().astimezone(UTC).date()
    wanted = asked(request.GET, today, whole_tenant=wide)
    if wanted.trouble:
        not_understood(request, wanted.trouble, f"What is shown is {wanted.words}, by {wanted.by}.")
    found = explore(wanted.by, ctx.project_id, wanted.start, wanted.end)
    rows = rows_of(wanted.by, found)
    return {
        "asked": wanted,
        "periods": PERIODS,
        "ways": [*BY, BY_PROJECT] if wide else BY,
        "what": dict([*BY, BY_PROJECT])[wanted.by],
        "found": found,
        "shown": days_in_words(found.start, found.end),
        "cut": found.start > wanted.start,
        "rows": rows,
        "most": MOST_GROUPS,
        "leads": LEADS.get(wanted.by, ""),
        "finding": finding(wanted, found, rows),
        "chart": chart_of(wanted, found),
        "all_url": calls_url(found.start, found.end),
        "file_url": f"?{wanted.query}&{FORMAT}=csv",
    }


def calls_url(start: date, end: date, **more: str) -> str:
    """The list of the single calls of these days."""
    begins, ends = (datetime.combine(day, time(), UTC).isoformat() for day in (start, end))
    asked_for = {"priced_at__gte": begins, "priced_at__lt": ends} | more
    return f"{reverse('admin:usage_usagerecord_changelist')}?{urlencode(asked_for)}"


def rows_of(by: str, found: Explored) -> list[UsageRow]:
    """The groups by what they cost, or the days in their order, each named and linked."""
    groups = [((day,), used) for day, used in found.days] if by == "day" else found.groups
    named = _names(by, [key for key, _ in groups], found)
    whole = found.total.cost
    return [
        UsageRow(
            name, url, used, share_of(used.cost, whole), float(100 * used.cost / whole) if whole else 0.0
        )
        for (name, url), (_, used) in zip(named, groups, strict=True)
    ]


def _names(by: str, keys: Sequence[tuple[Any, ...]], found: Explored) -> list[tuple[str, str]]:
    """Return what each group is called, and where one sees what is behind it."""
    if by == "day":
        return [(f"{day:%d %b %Y}", calls_url(day, day + timedelta(days=1))) for (day,) in keys]
    if by == "model":
        calls_of = partial(calls_url, found.start, found.end)
        return [
            (f"{seen(provider)}/{seen(name)}", calls_of(kind=kind, provider=provider, q=name))
            for kind, provider, name in keys
        ]
    if by == "workflow":
        runs = reverse("admin:runs_run_changelist")
        return [(seen(name), f"{runs}?{urlencode({'workflow_id': name})}") for (name,) in keys]
    page = {"release": "registry_release", "project": "projects_project"}[by]
    known = names_of(by, [key for (key,) in keys])
    return [(seen(known.get(key, str(key))), reverse(f"admin:{page}_change", args=[key])) for (key,) in keys]


def finding(wanted: UsageQuery, found: Explored, rows: Sequence[UsageRow]) -> str:
    """Return what the table says, in two sentences."""
    total = found.total
    if not total.calls:
        return ""
    told = f"{usd(total.cost)} for {_calls(total.calls - total.uncertain)} of known cost."
    if total.uncertain:
        told += f" The cost of {_calls(total.uncertain)} is not known, and not in it."
    top = max(rows, key=lambda row: row.used.cost)
    if len(rows) > 1 and total.cost:
        where = f"was on {top.name}" if wanted.by == "day" else f"was {top.name}"
        told += f" The largest part, {top.share}, {where}."
    return told


def _calls(many: int) -> str:
    return f"{many:,} call{pluralize(many)}"


def chart_of(wanted: UsageQuery, found: Explored) -> Chart:
    """Return what was spent on each day of the time."""
    by_day = dict(found.days)
    days = [found.start + timedelta(days=n) for n in range((found.end - found.start).days)]
    every = max(1, round(len(days) / 4))
    bars = [
        ColumnAmount(f"{day:%d %b}", float(used.cost), f"{day:%d %b %Y}: {usd(used.cost)}")
        for day in days
        for used in (by_day.get(day, NOTHING),)
    ]
    marks = [f"{day:%d %b}" if n % every == 0 else "" for n, day in enumerate(days)]
    most = max(found.days, key=lambda each: each[1].cost, default=None)
    told = f"Most on {most[0]:%d %b %Y}: {usd(most[1].cost)}." if most and most[1].cost else ""
    return Chart(
        key="days",
        title=f"Known cost a day, {days_in_words(found.start, found.end)}",
        finding=told,
        plot=amounts(bars, marks) if told else None,
        legend=(("busy", "known cost in USD, by the day of the call (UTC)"),),
        table=None
        if wanted.by == "day"
        else Table(
            ("Day", "Calls", "Cost, USD"),
            tuple((f"{day:%d %b %Y}", f"{used.calls:,}", number(used.cost)) for day, used in found.days),
        ),
        empty="No call of known cost lies in this time. Each day's cost would stand here as a column.",
        follows_span=False,
    )


HEAD = (
    "Calls",
    "Calls of unknown cost",
    "Known cost, USD",
    "Of it estimated, USD",
    "Input tokens",
    "Output tokens",
)


def file_of(wanted: UsageQuery, found: Explored) -> StreamingHttpResponse:
    """The table as a file, with every place of the amounts; the last line is the sum."""
    what = dict([*BY, BY_PROJECT])[wanted.by]
    lines: list[Sequence[str]] = [(what, *HEAD)]
    lines += [(row.name, *_figures(row.used)) for row in rows_of(wanted.by, found)]
    if found.more:
        lines.append((f"Only the {MOST_GROUPS} that cost most; the sum is of all.",))
    lines.append((f"All of {days_in_words(found.start, found.end)} (UTC)", *_figures(found.total)))
    return sheet(f"usage-by-{wanted.by}-{found.start}-{found.end - timedelta(days=1)}", lines)


def _figures(used: Used) -> tuple[str, ...]:
    tokens = (f"{amount.normalize():f}" for amount in (used.input_tokens, used.output_tokens))
    return (str(used.calls), str(used.uncertain), f"{used.cost:.6f}", f"{used.estimated:.6f}", *tokens)
