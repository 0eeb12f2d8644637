"""The difference of two texts as a file of a diff, within bounds: what `factory.admin.diffs` draws."""

from collections.abc import Sequence
from difflib import SequenceMatcher

from factory.admin.diffs import File
from factory.admin.folding import Line
from factory.admin.show import seen

AROUND = 3
"""So many lines that stayed stand around each change."""
MOST_WORK = 4_000_000
"""Texts are compared where the product of their lengths, but for what both begin and end with, is less."""


def between(path: str, before: str | None, after: str | None, *notes: str) -> File:
    """A file as it was and as it is; None where there was none."""
    old, new = _lines(before), _lines(after)
    if before is None or after is None:
        change, lines = ("new" if before is None else "deleted"), _whole(old, new)
    else:
        change, lines = "changed", _changed(old, new)
    added, removed = (sum(line.kind == kind for line in lines) for kind in ("add", "del"))
    return File(seen(path), change, added, removed, notes, lines)


def _lines(text: str | None) -> list[str]:
    return [] if text is None else text.removesuffix("\n").split("\n")


def _whole(old: Sequence[str], new: Sequence[str]) -> list[Line]:
    gone = [Line("del", text, number, None) for number, text in enumerate(old, start=1)]
    come = [Line("add", text, None, number) for number, text in enumerate(new, start=1)]
    return gone + come


def _changed(old: Sequence[str], new: Sequence[str]) -> list[Line]:
    first = max(0, _same(old, new) - AROUND)
    last = max(0, _same(old[first:][::-1], new[first:][::-1]) - AROUND)
    a, b = old[first : len(old) - last], new[first : len(new) - last]
    if len(a) * len(b) > MOST_WORK:
        return [Line("note", "It differs, and is too long to be compared here line by line.")]
    lines: list[Line] = []
    for group in SequenceMatcher(None, a, b, autojunk=False).get_grouped_opcodes(AROUND):
        lines.append(Line("hunk", _header(group, first)))
        for tag, i, j, k, m in group:
            if tag == "equal":
                lines += [Line("same", a[i + n], first + i + n + 1, first + k + n + 1) for n in range(j - i)]
                continue
            lines += [Line("del", a[n], first + n + 1, None) for n in range(i, j)]
            lines += [Line("add", b[n], None, first + n + 1) for n in range(k, m)]
    return lines or [Line("note", "It differs in how its last line ends, and in nothing that is read.")]


def _header(group: Sequence[tuple[str, int, int, int, int]], first: int) -> str:
    (_, i, _, k, _), (_, _, j, _, m) = group[0], group[-1]
    return f"@@ -{first + i + 1},{j - i} +{first + k + 1},{m - k} @@"


def _same(old: Sequence[str], new: Sequence[str]) -> int:
    """How many lines both begin with."""
    for number, (one, other) in enumerate(zip(old, new, strict=False)):
        if one != other:
            return number
    return min(len(old), len(new))
