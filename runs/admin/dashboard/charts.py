"""The first page's charts about runs."""

from collections import Counter
from collections.abc import Sequence
from math import ceil

from factory.console.charts import ChartColumn, ColumnPart, Series, curves, stacked
from factory.console.dashboard import Chart, DashboardQuery, Table, Window, chart, in_words
from factory.console.show import span
from factory.kernel.permissions import may
from runs.selectors.figures import NEWEST, Ended, Took, ended, took
from runs.states import RunState

OUTCOMES = ((RunState.COMPLETED, "good"), (RunState.FAILED, "bad"), (RunState.CANCELLED, "plain"))


@chart(10)
def runs_by_outcome(look: DashboardQuery) -> Chart | None:
    """Return how runs ended, by the hour or the day."""
    if not may(look.ctx, "ListRuns"):
        return None
    seen = look.window
    found = ended(look.ctx, seen.start, seen.end, seen.slots)
    sums: Counter[tuple[int, str]] = Counter()
    for each in found:
        sums[each.slot, each.state] += each.count
    columns = [
        ChartColumn(name, tuple(_part(sums[n, state], state, kind) for state, kind in OUTCOMES), mark)
        for n, (name, mark) in enumerate(zip(seen.names, seen.marks, strict=True), 1)
    ]
    return Chart(
        key="outcomes",
        title=f"Runs by outcome, {seen.words}",
        finding=_found(found, seen.names, _within(seen)),
        plot=stacked(columns) if found else None,
        legend=(("good", "Completed"), ("bad", "Failed (number above the bar)"), ("plain", "Cancelled")),
        table=Table(
            ("Hour" if seen.span == "hours" else "Day", *(state for state, _ in OUTCOMES)),
            tuple(
                (column.name, *(str(part.count) for part in column.parts))
                for column in columns
                if any(part.count for part in column.parts)
            ),
        ),
        empty="No run has ended in this time. Each stands here at the time of its end: Completed, Failed or "
        "Cancelled.",
    )


def _part(many: int, state: str, kind: str) -> ColumnPart:
    return ColumnPart(kind, state, many, named=state == RunState.FAILED)


def _within(window: Window) -> str:
    """A slot is called by its begin, and what is told of it may have been at any time in it."""
    return "in the hour from" if window.span == "hours" else "on"


def _found(found: Sequence[Ended], names: Sequence[str], within: str) -> str:
    if not found:
        return ""
    by_state: Counter[str] = Counter()
    for each in found:
        by_state[each.state] += each.count
    told = ", ".join(f"{by_state[state]:,} {state}" for state, _ in OUTCOMES if by_state[state]) + "."
    failed = [each for each in found if each.state == RunState.FAILED]
    if not failed:
        return f"{told} None failed."
    return f"{told} {_failures(failed, names, within)}"


def _failures(failed: Sequence[Ended], names: Sequence[str], within: str) -> str:
    """Return where most of them are, and of which class, if they have one in common."""
    slots: Counter[int] = Counter()
    for each in failed:
        slots[each.slot] += each.count
    slot, most = max(slots.items(), key=lambda each: (each[1], each[0]))
    classes = {each.failure_class for each in failed if each.slot == slot}
    of = f"of the class {next(iter(classes))}" if len(classes) == 1 else "of several failure classes"
    if most == sum(slots.values()):
        many = "It failed" if most == 1 else f"All {in_words(most).lower()} failed"
        return f"{many} {within} {names[slot - 1]}, {of}."
    return f"Most failures, {in_words(most).lower()}, were {within} {names[slot - 1]}, {of}."


UNITS = (
    ("s", 1, (2, 4, 10, 20, 30, 60)),
    ("min", 60, (2, 4, 6, 10, 20, 30, 60)),
    ("h", 3600, (2, 4, 8, 12, 24)),
)


def _axis(most: float) -> list[tuple[float, str]]:
    """Marks from 0 to the next round time, in one unit."""
    scales = [(limit, unit, long) for unit, long, limits in UNITS for limit in limits if limit * long >= most]
    limit, unit, long = scales[0] if scales else (ceil(most / 86_400 / 2) * 2, "d", 86_400)
    return [(limit * long * part / 2, f"{limit * part / 2:g} {unit}" if part else "0") for part in range(3)]


@chart(20)
def attempt_duration(look: DashboardQuery) -> Chart | None:
    """Return how long attempts took."""
    if not may(look.ctx, "ListRuns"):
        return None
    seen = look.window
    found = took(look.ctx, seen.start, seen.end, seen.slots)
    by_slot = {each.slot: each for each in found}
    slots = [by_slot.get(n) for n in range(1, seen.slots + 1)]
    axis = _axis(max((each.most for each in found), default=0))
    plot = curves(
        (
            Series("busy", "half within", tuple(each.half if each else None for each in slots)),
            Series("wait", "95 of 100 within", tuple(each.most if each else None for each in slots)),
        ),
        seen.names, seen.marks, axis,
        (
            [_long(each.half) if each else "" for each in slots],
            [_long(each.most) if each else "" for each in slots],
        ),
    )  # fmt: skip
    return Chart(
        key="durations",
        title=f"Attempt duration, {seen.words}",
        finding=_slowest(found, seen.names, _within(seen)),
        plot=plot if found else None,
        legend=(("busy", "half took no longer (p50)"), ("wait", "95 of 100 took no longer (p95)")),
        table=Table(
            ("Hour" if seen.span == "hours" else "Day", "Attempts", "p50", "p95"),
            tuple(
                (seen.names[each.slot - 1], str(each.count), _long(each.half), _long(each.most))
                for each in found
            ),
        ),
        empty="No attempt has ended in this time. Each is measured from its dispatch to its outcome; those "
        "that waited for a person are left out.",
    )


def _long(seconds: float) -> str:
    """A duration; of one that is no whole second, that it is less."""
    return span(seconds) if seconds >= 1 else "under 1 s"


def _at_most(seconds: float) -> str:
    return f"at most {span(seconds)}" if seconds >= 1 else "under 1 s"


def _slowest(found: Sequence[Took], names: Sequence[str], within: str) -> str:
    if not found:
        return ""
    many = sum(each.count for each in found)
    last, worst = found[-1], max(found, key=lambda each: each.most)
    whole = f"the newest {NEWEST:,}" if many >= NEWEST else f"{many:,}"
    return (
        f"Of {whole} attempts without a question to people: lately half took {_at_most(last.half)}. "
        f"The slowest were {within} {names[worst.slot - 1]}: 95 of 100 took {_at_most(worst.most)}."
    )
