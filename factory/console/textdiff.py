"""The difference of two texts as a file of a diff, within bounds: what `factory.console.diffs` draws."""

from collections.abc import Sequence
from difflib import Match, SequenceMatcher
from itertools import accumulate

from factory.console.diffs import File
from factory.console.folding import TextLine
from factory.console.show import seen

AROUND = 3
"""So many lines that stayed stand around each change."""
MOST_LINES = 10_000
"""Of one file, before and after together: more of it no page shows."""


SEARCH = 10
"""What a search costs by itself, in looks at a pair of equal lines."""


class ComparisonBudget:
    """Hold what the comparisons of one page may cost in all: so many looks at a pair of equal lines.

    The time of a comparison grows with the equal pairs, not with the lines: few different lines that come
    again and again cost most.
    """

    def __init__(self, steps: int = 2_000_000) -> None:
        self.left = steps

    def affords(self, steps: int) -> bool:
        """Take so many, if there are so many."""
        if steps > self.left:
            return False
        self.left -= steps
        return True


def between(
    path: str, before: str | None, after: str | None, *notes: str, work: ComparisonBudget | None = None
) -> File:
    """A file as it was and as it is; None where there was none. `work` is what the whole page has left."""
    old, new = _lines(before), _lines(after)
    if before is None or after is None:
        change = "new" if before is None else "deleted"
        return File(seen(path), change, len(new), len(old), notes, _whole(old, new))
    lines = _changed(old, new, work or ComparisonBudget())
    added, removed = (sum(line.kind == kind for line in lines) for kind in ("add", "del"))
    return File(seen(path), "changed", added, removed, notes, lines)


def _lines(text: str | None) -> list[str]:
    return [] if text is None else text.removesuffix("\n").split("\n")


def _whole(old: Sequence[str], new: Sequence[str]) -> list[TextLine]:
    gone = [TextLine("del", text, number, None) for number, text in enumerate(old[:MOST_LINES], start=1)]
    come = [TextLine("add", text, None, number) for number, text in enumerate(new[:MOST_LINES], start=1)]
    more = len(old) + len(new) - len(gone) - len(come)
    return [*gone, *come, *([TextLine("note", f"{more} more lines do not stand here.")] if more else [])]


def _changed(old: Sequence[str], new: Sequence[str], work: ComparisonBudget) -> list[TextLine]:
    first = max(0, _same(old, new) - AROUND)
    last = max(0, _same(old[first:][::-1], new[first:][::-1]) - AROUND)
    a, b = old[first : len(old) - last], new[first : len(new) - last]
    if len(a) + len(b) > MOST_LINES:
        return [TextLine("note", "It differs, and is too long to be compared here line by line.")]
    matcher, whole = _compared(a, b, work)
    lines: list[TextLine] = []
    for group in matcher.get_grouped_opcodes(AROUND):
        lines.append(TextLine("hunk", _header(group, first)))
        for tag, i, j, k, m in group:
            if tag == "equal":
                lines += [
                    TextLine("same", a[i + n], first + i + n + 1, first + k + n + 1) for n in range(j - i)
                ]
                continue
            lines += [TextLine("del", a[n], first + n + 1, None) for n in range(i, j)]
            lines += [TextLine("add", b[n], None, first + n + 1) for n in range(k, m)]
    if not whole:
        lines.append(
            TextLine("note", "Compared in part: lines that stayed may stand here as removed and added.")
        )
    return lines or [TextLine("note", "It differs in how its last line ends, and in nothing that is read.")]


def _compared(
    a: Sequence[str], b: Sequence[str], work: ComparisonBudget
) -> tuple[SequenceMatcher[str], bool]:
    """The comparison, and whether all of it could be afforded; what could not counts as unequal.

    It goes as `SequenceMatcher` goes, by the longest block and then on both sides of it, with the cost of
    each search taken from the page's work before it is made.
    """
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    places: dict[str, list[int]] = matcher.b2j  # type: ignore[attr-defined]  # documented, and not in the stubs
    cost = [0, *accumulate(1 + len(places.get(line, ())) for line in a)]
    found, open_parts, whole = [], [(0, len(a), 0, len(b))], True
    while open_parts:
        i, j, k, m = open_parts.pop()
        if i == j or k == m:
            continue
        if not work.affords(SEARCH + cost[j] - cost[i]):
            whole = False
            continue
        block = matcher.find_longest_match(i, j, k, m)
        if block.size:
            found.append(block)
            open_parts += [(i, block.a, k, block.b), (block.a + block.size, j, block.b + block.size, m)]
    matcher.matching_blocks = _joined(sorted(found), len(a), len(b))  # type: ignore[attr-defined]  # what it would have found itself
    return matcher, whole


def _joined(blocks: Sequence[Match], before: int, after: int) -> list[Match]:
    """Blocks that touch as one, and the empty one that ends them."""
    joined: list[Match] = []
    for block in blocks:
        last = joined[-1] if joined else None
        if last and (last.a + last.size, last.b + last.size) == (block.a, block.b):
            joined[-1] = Match(last.a, last.b, last.size + block.size)
        else:
            joined.append(block)
    return [*joined, Match(before, after, 0)]


def _header(group: Sequence[tuple[str, int, int, int, int]], first: int) -> str:
    (_, i, _, k, _), (_, _, j, _, m) = group[0], group[-1]
    return f"@@ -{first + i + 1},{j - i} +{first + k + 1},{m - k} @@"


def _same(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many lines both begin with."""
    for number, (one, other) in enumerate(zip(old, new, strict=False)):
        if one != other:
            return number
    return min(len(old), len(new))
