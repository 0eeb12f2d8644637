"""A reason that nobody can see is none."""

import pytest

from factory.kernel.errors import InvalidInput
from factory.kernel.reasons import reasoned
from factory.kernel.text import is_blank

BLANK = (
    "",
    " \t\n", "\u00a0\u3000", "\u200b\u2060", "\u202e\u2066\ufeff", "\x00\x1b", "\u2800\u3164\uffa0", "\ud800",
)  # fmt: skip
SEEN = ("x", " .", "\u200b\u05d0", "\u662f", "\U0001f44d", "0", "\u202etxt")


def test_what_shows_nothing_is_blank_and_what_shows_is_not() -> None:
    assert [text for text in BLANK if not is_blank(text)] == []
    assert [text for text in SEEN if is_blank(text)] == []


def test_a_reason_can_be_seen_and_is_no_longer_than_is_kept() -> None:
    assert reasoned("  because\n", "Why?") == "because"
    with pytest.raises(InvalidInput, match="Why"):
        reasoned("\u200b \u2060", "Why?")
    with pytest.raises(InvalidInput, match="too long by 1 of its 1,001 characters: at most 1,000 fit"):
        reasoned("x" * 1001, "Why?")
