"""What changed between two proposals of one step: what a returning reviewer looks at first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Any

from approvals.admin.detail.proposal import SHOWN, members_of
from approvals.admin.detail.sheets import label
from approvals.operations import kinds
from approvals.selectors import ProposalView
from factory.console import diffs
from factory.console.diffs import File
from factory.console.folding import FoldedLines, TextLine, parts_of
from factory.console.show import seen
from factory.console.spans import rendered
from factory.console.worddiff import WordComparisons

MOST_WORK = 4_000_000
"""Two texts are compared line by line where the product of their lengths is below this."""
MOST_PLACES = 200


@dataclass(frozen=True, slots=True)
class ChangedPlace:
    """A file or member that is not as it was: what the one proposal had there, and what the other has."""

    name: str
    is_path: bool
    lines: Sequence[TextLine] = field(repr=False)
    parts: tuple[FoldedLines, ...] = field(default=(), repr=False)

    @property
    def added(self) -> int:
        return sum(line.kind == "add" for line in self.lines)

    @property
    def removed(self) -> int:
        return sum(line.kind == "del" for line in self.lines)


@dataclass(frozen=True, slots=True)
class Since:
    """The difference of two proposals, by its places; `tags` are for the file list of the second."""

    places: tuple[ChangedPlace, ...] = ()
    same: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    tags: dict[str, tuple[str, bool]] = field(default_factory=dict)
    left_out: int = 0

    @property
    def nothing(self) -> bool:
        return not (self.places or self.dropped or self.fresh)


def compare(old: ProposalView, new: ProposalView, number: int = 1) -> Since:
    """Return what is not in both; `number` is which proposal of its step the first one is."""
    if old.hash == new.hash:
        return Since()
    before, after = _files(old.content), _files(new.content)
    apart = () if before is None or after is None else ("diff",)
    members = list(_members(old.content, new.content, apart))
    found = _by_file(before or {}, after or {}, number) if apart else Since()
    words = WordComparisons()
    told = [_drawn(place, words) for place in [*found.places, *members][:MOST_PLACES]]
    return replace(found, places=tuple(told), left_out=len(found.places) + len(members) - len(told))


def _files(content: Any) -> dict[str, File] | None:
    """The files of a change by their paths; None where there are none, or two of one name."""
    diff = content.get("diff") if isinstance(content, dict) else None
    if not isinstance(diff, str) or content.get("kind") != kinds.UNIFIED_DIFF or len(diff) > SHOWN:
        return None
    read = diffs.read(diff)
    if read is None:
        return None
    files = {file.path: file for file in read.files}
    return files if len(files) == len(read.files) else None


def _by_file(before: dict[str, File], after: dict[str, File], number: int) -> Since:
    places, same, fresh = [], [], []
    tags: dict[str, tuple[str, bool]] = {}
    for path, file in after.items():
        was = before.get(path)
        if was is None:
            fresh.append(path)
            tags[path] = (f"not in proposal {number}", True)
        elif _signed(was) == _signed(file):
            same.append(path)
            tags[path] = (f"as in proposal {number}", False)
        else:
            tags[path] = (f"differs from proposal {number}", True)
            places.append(ChangedPlace(path, True, _between(_signed(was), _signed(file))))
    dropped = tuple(path for path in before if path not in after)
    return Since(tuple(places), tuple(same), dropped, tuple(fresh), tags)


def _signed(file: File) -> list[tuple[str, str]]:
    """Return what a file's part of a proposal does: its added and removed lines, and what is said in
    words."""
    said = [("note", note) for note in (file.change, *file.notes)]
    return [*said, *((line.kind, line.text) for line in file.lines if line.kind in ("add", "del"))]


def _between(was: list[tuple[str, str]], now: list[tuple[str, str]]) -> list[TextLine]:
    """From the one outcome to the other: what only the first would have left there, and only the second.

    A line that is not removed any more is one that the second outcome has, and the other way round.
    """
    if len(was) * len(now) > MOST_WORK:
        return [TextLine("note", "It differs, and is too long to be compared here: read it above.")]
    lines: list[TextLine] = []
    for group in SequenceMatcher(None, was, now).get_grouped_opcodes(1):
        if lines:
            lines.append(TextLine("hunk", "…"))
        for tag, a, b, c, d in group:
            if tag == "equal":
                lines += [TextLine("same", text) for kind, text in was[a:b] if kind != "del"]
            else:
                lines += sorted(_turned(was[a:b], now[c:d]), key=lambda line: line.kind != "del")
    return lines


def _turned(gone: Sequence[tuple[str, str]], come: Sequence[tuple[str, str]]) -> Iterator[TextLine]:
    opposite = {"add": "del", "del": "add", "note": "del"}
    yield from (TextLine(opposite[kind], text) for kind, text in gone)
    yield from (TextLine("add" if kind == "note" else kind, text) for kind, text in come)


def _members(old: Any, new: Any, without: Sequence[str]) -> Iterator[ChangedPlace]:
    was, now = members_of(old, without), members_of(new, without)
    for name in dict.fromkeys([*now, *was]):
        before, after = was.get(name), now.get(name)
        if before == after:
            continue
        yield ChangedPlace(_member_name(name), False, _between(_lines(before), _lines(after)))


def _lines(text: str | None) -> list[tuple[str, str]]:
    return [] if text is None else [("add", line) for line in text.split("\n")]


def _member_name(name: str) -> str:
    first, point, rest = name.partition(".")
    return f"{label(first)}: {seen(rest)}" if point else label(first)


def _drawn(place: ChangedPlace, words: WordComparisons) -> ChangedPlace:
    changed = diffs.changed_words(place.lines, words)
    drawn = [
        replace(line, html=rendered([("", line.text)], changed.get(number, ())))
        for number, line in enumerate(place.lines)
    ]
    return replace(place, lines=drawn, parts=parts_of(drawn))
