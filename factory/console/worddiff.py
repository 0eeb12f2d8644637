"""Which words of a changed line changed: pairs of removed and added lines, compared within a bound."""

import re
import time
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from factory.console.spans import Range

WORDS = re.compile(r"\w+|\s+|[^\w\s]")
ALIKE = 0.4
"""Less alike than this, two lines are two lines, and no change of one."""
NEAR = 6
LONGEST_LINE = 400
MOST_WORDS = 160
LONGEST_RUN = 60
SECONDS = 0.5


class WordComparisons:
    """The word-level comparisons of one page, with what they may cost in all."""

    def __init__(self, work: int = 3_000_000) -> None:
        self.left = work
        self.seconds = SECONDS

    def pairs(self, gone: Sequence[str], come: Sequence[str]) -> Iterator[tuple[int, int]]:
        """By position, which removed line became which added one; neither is used twice, none cross."""
        if not gone or not come or max(len(gone), len(come)) > LONGEST_RUN:
            return
        if len(gone) == len(come):
            yield from zip(range(len(gone)), range(len(come)), strict=True)
            return
        before, after = [_bag(line) for line in gone], [_bag(line) for line in come]
        at = 0
        for number, bag in enumerate(before):
            near = range(at, min(at + NEAR, len(after)))
            best = max(near, key=lambda place: _alike(bag, after[place]), default=None)
            if best is not None and _alike(bag, after[best]) >= ALIKE:
                yield number, best
                at = best + 1

    def changed(self, old: str, new: str) -> tuple[list[Range], list[Range]] | None:
        """The changed parts of both, or None where the lines have too little in common, or are too long."""
        if max(len(old), len(new)) > LONGEST_LINE:
            return None
        before, after = WORDS.findall(old), WORDS.findall(new)
        cost = len(before) * len(after)
        if cost > self.left or max(len(before), len(after)) > MOST_WORDS or self.seconds < 0:
            return None
        self.left -= cost
        began = time.thread_time()
        steps = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        self.seconds -= time.thread_time() - began
        kept = sum(len("".join(before[a:b])) for tag, a, b, _, _ in steps if tag == "equal")
        if 2 * kept < ALIKE * (len(old) + len(new)):
            return None
        return (
            _ranges(before, [(a, b) for tag, a, b, _, _ in steps if tag != "equal"]),
            _ranges(after, [(c, d) for tag, _, _, c, d in steps if tag != "equal"]),
        )


def _ranges(words: Sequence[str], parts: Sequence[Range]) -> list[Range]:
    """Parts in words as parts in characters."""
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    return [(starts[a], starts[b]) for a, b in parts if starts[b] > starts[a]]


def _bag(line: str) -> frozenset[str]:
    return frozenset(word for word in WORDS.findall(line[:LONGEST_LINE]) if not word.isspace())


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one | other))
