"""Somebody else's text as safe HTML: escaped, in classes of our own, and with nothing in it unseen."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString

from factory.console.show import UNSEEN

Token = tuple[str, str]
"""A class of ours (or none) and the text that has it."""
Range = tuple[int, int]

HIDDEN = re.compile("([" + "".join(re.escape(chr(code)) for code in UNSEEN) + "])")
TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
HARMLESS = "\u200d\ufe0e\ufe0f"
"""What joins and styles emoji. It is written out like the rest, but nobody is warned of it."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """Hold how many characters of a text turn its direction, and how many others nobody would see."""

    turning: int = 0
    unseen: int = 0

    def __bool__(self) -> bool:
        return bool(self.turning or self.unseen)


def hidden_in(text: str) -> Hidden:
    """Return what a reader of the bare text would be deceived by."""
    found = [one for one in HIDDEN.findall(text) if one not in HARMLESS and one != "\r"]
    turning = sum(bool(TURNING.match(one)) for one in found)
    return Hidden(turning, len(found) - turning)


def rendered(tokens: Iterable[Token], changed: Sequence[Range] = ()) -> SafeString:
    """One line: each token escaped in a span of its class; what lies in `changed` is marked as a change."""
    told = list(tokens)
    if not changed and not any(css for css, _ in told):
        return _span("", "".join(text for _, text in told))
    return format_html_join("", "{}", ((part,) for part in _parts(told, changed)))


def _parts(tokens: Iterable[Token], changed: Sequence[Range]) -> Iterator[SafeString]:
    at = 0
    for css, text in tokens:
        for piece, is_changed in _cut(text, at, changed):
            yield _span(f"{css} w".strip() if is_changed else css, piece)
        at += len(text)


def _cut(text: str, at: int, changed: Sequence[Range]) -> Iterator[tuple[str, bool]]:
    """A token in pieces that are changed or not; `at` is where in the line it begins."""
    done, end = at, at + len(text)
    for first, last in changed:
        first, last = max(first, done), min(last, end)
        if first >= last:
            continue
        if first > done:
            yield text[done - at : first - at], False
        yield text[first - at : last - at], True
        done = last
    if done < end:
        yield text[done - at :], False


def _span(css: str, text: str) -> SafeString:
    shown = _visible(text) if HIDDEN.search(text) else escape(text)
    return format_html('<span class="{}">{}</span>', css, shown) if css else shown


def _visible(text: str) -> SafeString:
    """The text with what nobody would see written out, marked so that it is not taken for words."""
    return format_html_join(
        "",
        "{}",
        (
            (format_html('<span class="fc-unseen">{}</span>', UNSEEN[ord(part)]) if odd else escape(part),)
            for odd, part in ((number % 2, part) for number, part in enumerate(HIDDEN.split(text)))
            if part
        ),
    )
