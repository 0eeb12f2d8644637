"""Small renderings that every page shares. All text is escaped: other people's words are data."""

import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from factory.kernel.amounts import CENT, usd
from factory.kernel.colours import colour_of

COMMIT_DIGITS = 12
SHORTENED_ID = re.compile(r"(…\w+)")
MARKS = {"good": "✓", "busy": "▸", "wait": "⋯", "doubt": "?", "bad": "✕", "plain": "○"}


def tone(state: str) -> str:
    """Return the colour of a state; the word itself is always shown with it."""
    return colour_of(state).value


UNSEEN = {
    code: f"\u27e8U+{code:04X}\u27e9"
    for code in (
        *(control for control in range(0x20) if chr(control) not in "\t\n"),
        *range(0x7F, 0xA0),
        *range(0x200B, 0x2010),
        *range(0x2028, 0x202F),
        *range(0x2060, 0x2070),
        *range(0xFE00, 0xFE10),
        *range(0xFFF9, 0xFFFC),
        *range(0xE0000, 0xE0080),
        *range(0xE0100, 0xE01F0),
        *(0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x3164, 0xFEFF, 0xFFA0),
    )
}
"""Controls, and what turns the direction of a text, breaks its lines or has no width: a reader would see
another text. A tab and a line feed are what they look like."""


def seen(text: object) -> str:
    """Other people's words with every character that would hide or turn some of them written out."""
    return str(text or "").translate(UNSEEN)


def badge(state: str) -> SafeString:
    """A state as mark, colour and word."""
    kind = tone(state)
    return format_html(
        '<span class="fc-badge {}"><span aria-hidden="true">{}</span>{}</span>', kind, MARKS[kind], state
    )


def mark(state: str) -> str:
    """The sign of a state, for where its word stands beside it already."""
    return MARKS[tone(state)]


def outline(word: str) -> SafeString:
    """A word of the control plane's vocabulary, such as an action class."""
    return format_html('<span class="fc-badge fc-outline">{}</span>', word)


def short(value: object) -> SafeString:
    """The end of a long id or hash, with all of it in the title."""
    text = str(value or "")
    if len(text) <= 12:
        return format_html("<code>{}</code>", text)
    return format_html('<code title="{}">…{}</code>', text, text[-8:])


def commit_in_short(commit: str) -> str:
    """The beginning of a commit, by which people know it: the same wherever one is told in a line."""
    return commit[:COMMIT_DIGITS]


def opening(value: object) -> SafeString:
    """Return the beginning of a commit in the face of code, with all of it in the title."""
    text = str(value or "")
    if len(text) <= COMMIT_DIGITS:
        return format_html("<code>{}</code>", text)
    return format_html('<code title="{}">{}…</code>', text, commit_in_short(text))


HASH = re.compile(r"(?:sha256:)?[0-9a-f]{40,64}")


def coded(value: object) -> SafeString:
    """A value beside its name: a hash or a commit whole and in the face of code, words as they are seen."""
    text = str(value or "")
    return format_html("<code>{}</code>" if HASH.fullmatch(text) else "{}", seen(text))


def parted(name: str, after: str = ".") -> SafeString:
    """A long name without spaces, which may break after these characters, and nowhere inside its words."""
    parts = re.split(f"(?<=[{re.escape(after)}])", seen(name))
    return format_html(
        '<code class="fc-parted">{}</code>',
        format_html_join(SafeString("<wbr>"), "{}", ((part,) for part in parts)),
    )


def link(url: str, words: object) -> SafeString:
    """Return the way to a page; words that are not HTML yet are escaped."""
    return format_html('<a class="fc-link" href="{}">{}</a>', url, words)


def whole(text: object) -> SafeString:
    """A line of text in which the dots of a shortened id are never parted from it; HTML stays as it is."""
    if isinstance(text, SafeString):
        return text
    parts = SHORTENED_ID.split(str(text))
    kept = ('<span class="fc-nowrap">{}</span>' if at % 2 else "{}" for at in range(len(parts)))
    return format_html_join(
        "", "{}", ((format_html(way, part),) for way, part in zip(kept, parts, strict=True))
    )


def cut(text: object, most: int) -> SafeString:
    """Other people's words, cut at a word with all of it in the title: a list's file tells the whole."""
    whole = seen(text)
    if len(whole) <= most:
        return format_html("{}", whole)
    head = whole[:most]
    kept = head if whole[most].isspace() else head.rpartition(" ")[0] or head
    return format_html('<span title="{}">{}…</span>', whole, kept.rstrip(" ,;:"))


def when(at: datetime | None) -> SafeString:
    """A time in UTC, to the second, with a machine-readable form."""
    if at is None:
        return SafeString("<span>–</span>")
    moment = at.astimezone(UTC)
    return format_html(
        '<time datetime="{}">{} UTC</time>', moment.isoformat(), moment.strftime("%d %b %Y %H:%M:%S")
    )


def amount(value: Decimal | None) -> SafeString:
    """Return an amount as `usd` says it; where that rounds it, all of it is in the title."""
    if value is None or value == value.quantize(CENT):
        return format_html("{}", usd(value))
    return format_html('<span title="{}">{}</span>', in_full(value), usd(value))


def in_full(value: Decimal) -> str:
    """Return an amount with all of its places."""
    return usd(value) if value == value.quantize(CENT) else f"{value.normalize():f} USD"


def signed(value: Decimal) -> SafeString:
    """Return a movement as `usd` says it, with its sign; where that rounds it, all of it is in the title."""
    sign = "+" if value > 0 else "−" if value < 0 else ""
    words = f"{sign}{usd(abs(value))}"
    if value == value.quantize(CENT):
        return format_html("{}", words)
    return format_html('<span title="{}{}">{}</span>', sign, in_full(abs(value)), words)


def measured(quantity: object, unit: str) -> str:
    """A quantity in words: 12,400 input tokens, 1 call. Units are other people's words."""
    number = Decimal(str(quantity))
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", seen(unit)).lower()
    one = words.endswith("s") and not words.endswith("ss") and number == 1
    return f"{number.normalize():,f} {words[:-1] if one else words}"


def at_slashes(text: object) -> SafeString:
    """A name that is broken behind its slashes alone, unless a part of it is too long for any column."""
    parts = seen(text).split("/")
    ends = [f"{part}/" for part in parts[:-1]] + parts[-1:]
    whole = ((SafeString(' class="fc-unbroken"') if len(end) <= 40 else "", end) for end in ends)
    return format_html_join(SafeString("<wbr>"), "<span{}>{}</span>", whole)


def timed(at: datetime, words: object) -> SafeString:
    """Return a time that is told otherwise than by the clock, such as by what is left of it."""
    return format_html('<time datetime="{}">{}</time>', at.astimezone(UTC).isoformat(), words)


def clock(at: datetime | None) -> SafeString:
    """A time in UTC on two short lines, the time of day first."""
    if at is None:
        return SafeString("<span>–</span>")
    moment = at.astimezone(UTC)
    return format_html(
        '<time datetime="{}">{}<br><span class="fc-soft">{}</span></time>',
        moment.isoformat(), moment.strftime("%H:%M:%S"), moment.strftime("%d %b %Y"),
    )  # fmt: skip


def brief(seconds: float) -> str:
    """A duration as `span` says it; below ten seconds with a tenth, and never as none at all."""
    if 0 < abs(seconds) < 0.05:
        return "under 0.1 s"
    return f"{seconds:.1f} s" if abs(seconds) < 10 else span(seconds)


def span(seconds: float) -> str:
    """A duration as people say it: 3 h 35 min, 42 s."""
    total = int(abs(seconds))
    days, rest = divmod(total, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    if minutes:
        return f"{minutes} min {left} s" if minutes < 10 else f"{minutes} min"
    return f"{left} s"


def pretty(value: Any) -> str:
    """A JSON value as indented text, bounded: a page is for reading."""
    return json.dumps(value, indent=2, ensure_ascii=False)[:100_000]
