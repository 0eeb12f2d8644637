"""A budget as a bar: what is spent, held and reserved of it, and what is left, with the words for each."""

from dataclasses import dataclass
from datetime import UTC, datetime, time
from decimal import Decimal

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from factory.console.dashboard import Tone
from factory.console.show import seen, span
from factory.kernel.amounts import usd
from usage.models import Budget
from usage.pricing.money import ZERO

TIGHT, LOW = 95, 75
"""Per cent in use: from the first on a budget is nearly used up, from the second on it is to be watched."""


@dataclass(frozen=True, slots=True)
class BudgetShare:
    """A part of a budget: its colour, what it is, how much, and what that means."""

    tone: str
    word: str
    amount: Decimal
    percent: str
    meaning: str


def of_what(row: Budget) -> str:
    """Return whose money it is."""
    return seen(row.project.name) if row.project else "the whole tenant"


def name_of(row: Budget) -> str:
    """Return what a budget is called: its month, and whose it is."""
    return f"{row.period_start:%B %Y}, {of_what(row)}"


def percent_in_use(row: Budget) -> int:
    """Return what cannot be reserved any more: 100 only when nothing is left, and 0 only when nothing is
    used."""
    used = row.amount - row.available
    if row.available <= 0:
        return 100
    if used <= 0:
        return 0
    return min(99, max(1, round(100 * used / row.amount)))


def tone_of(row: Budget) -> Tone:
    percent = percent_in_use(row)
    return "bad" if percent >= TIGHT else "wait" if percent >= LOW else "plain"


def in_words(row: Budget) -> str:
    """Return how much of it is in use, in a sentence's part; more than it holds only where usage came
    late."""
    if row.available < 0:
        return f"overdrawn by {usd(-row.available)}"
    return f"{percent_in_use(row)} % in use"


def shares(row: Budget) -> list[BudgetShare]:
    """Its parts, in the order of the bar."""
    parts = (
        ("busy", "spent", row.spent, "what runs that ended have cost"),
        ("doubt", "held", row.held, "kept back for calls of unknown cost, until that is settled"),
        ("wait", "reserved", row.committed, "what open runs may still cost"),
        ("rest", "left", max(row.available, ZERO), "what further runs can reserve of this budget"),
    )
    return [
        BudgetShare(tone, word, held, share_of(held, row.amount), told) for tone, word, held, told in parts
    ]


def share_of(part: Decimal, whole: Decimal) -> str:
    """A part of a whole, as people say it."""
    if not part or not whole:
        return "0 %"
    percent = 100 * part / whole
    return f"{percent:.0f} %" if percent >= 1 else "below 1 %"


def bar(row: Budget) -> SafeString:
    """The bar alone: whoever does not see it reads the words that stand with it."""
    parts = format_html_join(
        "", '<i class="{}" style="flex:{}"></i>',
        ((each.tone, f"{each.amount:f}") for each in shares(row) if each.amount > 0),
    )  # fmt: skip
    return format_html('<span class="fc-shares" aria-hidden="true">{}</span>', parts)


def bar_in_words(row: Budget) -> SafeString:
    """The bar, and below it how much is in use."""
    return format_html('{}<span class="fc-use {}">{}</span>', bar(row), tone_of(row), in_words(row))


def ends_at(row: Budget) -> datetime:
    """The first instant that is not in its month."""
    return datetime.combine(row.period_end, time(), UTC)


def time_in_words(row: Budget, at: datetime) -> str:
    """Return where its month stands."""
    begins, ends = datetime.combine(row.period_start, time(), UTC), ends_at(row)
    if at < begins:
        return f"begins in {span((begins - at).total_seconds())}"
    if at >= ends:
        return f"ended {row.period_end:%d %b %Y}"
    return f"ends in {span((ends - at).total_seconds())}"
