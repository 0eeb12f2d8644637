"""What people see of a text, and what of it nobody is to see.

A reason of nothing but invisible characters is none, and a sign-in link is its holder's alone.
"""

import re
import unicodedata

UNSEEN = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols by their category that show nothing: Hangul fillers and the empty Braille pattern."""

_WITHOUT_WIDTH = re.compile("[\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Marks by their category that show nothing by themselves: joiners and selectors of variants."""


def hides(text: str) -> bool:
    """Tell whether it has a character that people would not see, or that breaks or turns the line."""
    hidden = any(c in UNSEEN or unicodedata.category(c) in _HIDING for c in text)
    return hidden or bool(_WITHOUT_WIDTH.search(text))


_HIDING = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


def is_blank(text: str) -> bool:
    """No character but spaces, controls, and what formats without being seen (zero width, direction)."""
    return all(c in UNSEEN or unicodedata.category(c)[0] in "ZC" for c in text)


_SIGN_IN_LINK = re.compile(r"(/sign-in/+[^/\s]+/+)\S+", re.IGNORECASE)


def without_links(text: str) -> str:
    """Return a text or path to be logged, without what in a sign-in link lets somebody set a password."""
    return _SIGN_IN_LINK.sub(r"\1***", text)
