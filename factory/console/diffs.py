"""A unified diff as data for a template. The text is somebody else's: it is parsed, never trusted."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from django.template.defaultfilters import pluralize
from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk, PatchedFile, PatchSet

from factory.console.colours import Palette, plain
from factory.console.folding import FoldedLines, TextLine, parts_of
from factory.console.show import seen
from factory.console.spans import Token, rendered
from factory.console.worddiff import WordComparisons

OPEN = 160
"""So many lines stand open on a page; the files after them are folded, each with a sentence."""
MOST_LINES = 10_000
"""More of one page no browser shows and nobody reads; the rest is in the download, and the page says so."""

KINDS = {"+": "add", "-": "del", " ": "same", "\\": "note"}
MODES = {
    "100644": "an ordinary file",
    "100755": "an executable file",
    "120000": "a symbolic link",
    "160000": "a submodule",
}
HEADER = re.compile(
    r"(diff --git |index [0-9a-f]+\.\.|--- |\+\+\+ |@@ |old mode |new mode |new file mode |deleted file mode "
    r"|(dis)?similarity index |rename (from|to) |copy (from|to) |Binary files? |GIT binary patch)"
)


@dataclass(frozen=True, slots=True)
class File:
    """One file of a diff: `change` in a word, `notes` in sentences, `tag` for what a page says of it."""

    path: str
    change: str
    added: int
    removed: int
    notes: tuple[str, ...]
    lines: list[TextLine] = field(repr=False)
    parts: tuple[FoldedLines, ...] = field(default=(), repr=False)
    opened: bool = True
    tag: str = ""
    differs: bool = False
    binary: bool = False

    @property
    def folded(self) -> str:
        """Return what stands in a file that is closed."""
        count = len(self.lines)
        if not count:
            return " ".join(self.notes)
        return f"{count} line{pluralize(count)}, closed: open to read"


@dataclass(frozen=True, slots=True)
class Diff:
    """All files of a diff, and what of its text belongs to none of them."""

    files: list[File]
    stray: str = ""
    cut: int = 0

    @property
    def added(self) -> int:
        return sum(file.added for file in self.files)

    @property
    def removed(self) -> int:
        return sum(file.removed for file in self.files)

    def tagged(self, tags: Mapping[str, tuple[str, bool]]) -> "Diff":
        """Return the same with what is said of files beside their names, and whether that makes them
        differ."""
        told = [(file, *tags.get(file.path, (file.tag, file.differs))) for file in self.files]
        return replace(self, files=[replace(file, tag=tag, differs=differs) for file, tag, differs in told])


def read(diff: str) -> Diff | None:
    """The files of a unified diff as text alone, or None when it is none."""
    try:
        patch = PatchSet(diff)
    except (UnidiffParseError, ValueError, IndexError):
        return None
    if not patch:
        return None
    return Diff([_file(each) for each in patch], _stray(diff, patch))


def for_page(diff: Diff) -> Diff:
    """Return the same with colours, changed words and folds: what a template needs, within bounds."""
    palette, words, left, files = Palette(), WordComparisons(), MOST_LINES, []
    some_differ = any(file.differs for file in diff.files)
    stand_open = OPEN
    for file in diff.files:
        kept = file.lines[: max(0, left)]
        left -= len(kept)
        wanted = file.differs or not some_differ
        fits = stand_open == OPEN or 0 < len(kept) <= stand_open
        opened = wanted and fits
        stand_open -= len(kept) + 1 if opened else 0
        parts = parts_of(_drawn(file.path, kept, palette, words))
        files.append(replace(file, parts=parts, opened=opened))
    return replace(diff, files=files, cut=sum(len(file.lines) for file in diff.files) - (MOST_LINES - left))


def _file(patched: PatchedFile) -> File:
    lines = [line for hunk in patched for line in _hunk(hunk)]
    returns = [line for line in lines if line.kind in ("add", "del", "same")]
    windows = bool(returns) and all(line.text.endswith("\r") for line in returns)
    if windows:
        lines = [replace(line, text=line.text.removesuffix("\r")) for line in lines]
    notes = [*_notes(patched), *(["Its lines end as on Windows (CR LF)."] if windows else [])]
    return File(
        seen(_name(patched)), _change(patched), patched.added, patched.removed, tuple(notes), lines,
        binary=patched.is_binary_file,
    )  # fmt: skip


def _name(patched: PatchedFile) -> str:
    """The path that the file has afterwards."""
    return patched.path.strip('"')


def _change(patched: PatchedFile) -> str:
    if patched.is_added_file:
        return "new"
    if patched.is_removed_file:
        return "deleted"
    if patched.is_rename:
        return "renamed" if not any(map(len, patched)) else "renamed and changed"
    if patched.is_binary_file:
        return "binary"
    return "changed" if patched else "mode only" if _modes(patched) else "nothing changed"


def _notes(patched: PatchedFile) -> Iterator[str]:
    """Return what is no line of it, in words."""
    if patched.is_removed_file:
        yield "The whole file is deleted."
    elif patched.is_rename:
        yield seen(f"Renamed from {patched.source_file.removeprefix('a/')}.") + (
            "" if len(patched) else " Its content stays as it is."
        )
    info: Sequence[str] = patched.patch_info or ()
    if any(line.startswith("copy from ") for line in info):
        yield "It is a copy: the file that it was copied from stays."
    if patched.is_binary_file:
        yield "It is binary: what changes in it cannot be read here. It is in the download as it was hashed."
    yield from _modes(patched)


def _modes(patched: PatchedFile) -> Iterator[str]:
    before, after = patched.source_mode, patched.target_mode
    if before and after and before != after:
        yield seen(f"It was {MODES.get(before, before)} and becomes {MODES.get(after, after)}.")
    elif after in ("100755", "120000", "160000") and (patched.is_added_file or not before):
        yield f"It is {MODES[after]}."


def _hunk(hunk: Hunk) -> Iterator[TextLine]:
    header = f"@@ -{hunk.source_start},{hunk.source_length} +{hunk.target_start},{hunk.target_length} @@"
    yield TextLine("hunk", f"{header} {hunk.section_header}".rstrip())
    for line in hunk:
        kind, text = KINDS.get(line.line_type, ""), line.value.removesuffix("\n")
        if kind:
            yield TextLine(kind, text, line.source_line_no, line.target_line_no)


def _stray(diff: str, patch: PatchSet) -> str:
    """The lines that stand in no file: they were hashed as well, so they are shown as well."""
    known = {line.diff_line_no for file in patch for hunk in file for line in hunk}
    found, binary = [], False
    for number, line in enumerate(diff.split("\n"), start=1):
        binary = line == "GIT binary patch" or (binary and not line.startswith("diff --git "))
        ours = number in known or HEADER.match(line) or line.startswith("\\ No newline") or binary
        if not ours and line.strip():
            found.append(line)
    return "\n".join(found)


def _drawn(path: str, lines: Sequence[TextLine], palette: Palette, words: WordComparisons) -> list[TextLine]:
    """Each line with its HTML: one hunk after the other, because a colour may reach over lines."""
    drawn: list[TextLine] = []
    for hunk in _hunks(lines):
        tokens = _coloured(path, hunk, palette)
        changed = changed_words(hunk, words)
        for number, line in enumerate(hunk):
            told = tokens.get(number) or plain(line.text)
            drawn.append(replace(line, html=rendered(told, changed.get(number, ()))))
    return drawn


def _coloured(path: str, hunk: Sequence[TextLine], palette: Palette) -> dict[int, list[Token]]:
    """By place, the tokens of a hunk's lines: those before as one text, those after as another."""
    found: dict[int, list[Token]] = {}
    for kinds in (("del", "same"), ("add", "same")):
        places = [number for number, line in enumerate(hunk) if line.kind in kinds]
        found |= zip(places, palette.colour(path, [hunk[place].text for place in places]), strict=True)
    return found


def _hunks(lines: Sequence[TextLine]) -> Iterator[list[TextLine]]:
    hunk: list[TextLine] = []
    for line in lines:
        if line.kind == "hunk" and hunk:
            yield hunk
            hunk = []
        hunk.append(line)
    if hunk:
        yield hunk


def changed_words(lines: Sequence[TextLine], words: WordComparisons) -> dict[int, Sequence[tuple[int, int]]]:
    """By place, the parts of lines that differ from the line that each one replaces or is replaced by."""
    changed: dict[int, Sequence[tuple[int, int]]] = {}
    gone: list[int] = []
    come: list[int] = []
    for number, line in enumerate([*lines, TextLine("end", "")]):
        if line.kind == "del" and not come:
            gone.append(number)
        elif line.kind == "add" and gone:
            come.append(number)
        elif line.kind != "note":
            changed |= _changed_in(lines, gone, come, words)
            gone, come = ([number] if line.kind == "del" else []), []
    return changed


def _changed_in(
    lines: Sequence[TextLine], gone: list[int], come: list[int], words: WordComparisons
) -> dict[int, Sequence[tuple[int, int]]]:
    found: dict[int, Sequence[tuple[int, int]]] = {}
    pairs = words.pairs([lines[n].text for n in gone], [lines[n].text for n in come])
    for old, new in pairs:
        told = words.changed(lines[gone[old]].text, lines[come[new]].text)
        if told is not None:
            found[gone[old]], found[come[new]] = told
    return found
