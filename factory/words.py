"""Whether people would see anything of a text: a reason of nothing but invisible characters is none."""

import unicodedata

UNSEEN = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols by their category that show nothing: Hangul fillers and the empty Braille pattern."""


def is_blank(text: str) -> bool:
    """No character but spaces, controls, and what formats without being seen (zero width, direction)."""
    return all(c in UNSEEN or unicodedata.category(c)[0] in "ZC" for c in text)
