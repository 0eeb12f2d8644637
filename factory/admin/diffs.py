"""A unified diff as data for a template. The text is somebody else's: it is parsed, never trusted."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk, PatchedFile, PatchSet

from factory.admin.show import seen

LONG_FILE = 400
"""A longer file is folded: it opens with a click, and the count says how much there is."""

KINDS = {"+": "add", "-": "del", " ": "same", "\\": "note"}


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its kind (add, del, same, hunk, note), its numbers before and after, its text."""

    kind: str
    before: int | None
    after: int | None
    text: str

    @property
    def mark(self) -> str:
        return {"add": "+", "del": "−"}.get(self.kind, "")


@dataclass(frozen=True, slots=True)
class File:
    """One file of a diff."""

    path: str
    change: str
    added: int
    removed: int
    lines: list[Line] = field(repr=False)

    @property
    def folded(self) -> bool:
        return len(self.lines) > LONG_FILE


def files_of(diff: str) -> list[File] | None:
    """The files of a unified diff, or None when it is none: then it is shown as the text that it is."""
    try:
        patch = PatchSet(diff)
    except (UnidiffParseError, ValueError, IndexError):
        return None
    if not patch:
        return None
    return [_file(each) for each in patch]


def _file(patched: PatchedFile) -> File:
    change = "new" if patched.is_added_file else "deleted" if patched.is_removed_file else "changed"
    if patched.is_rename:
        change = seen(f"renamed from {patched.source_file.removeprefix('a/')}")
    lines = [line for hunk in patched for line in _hunk(hunk)]
    return File(seen(patched.path), change, patched.added, patched.removed, lines)


def _hunk(hunk: Hunk) -> Iterator[Line]:
    header = f"@@ -{hunk.source_start},{hunk.source_length} +{hunk.target_start},{hunk.target_length} @@"
    yield Line("hunk", None, None, seen(f"{header} {hunk.section_header}".rstrip()))
    for line in hunk:
        kind = KINDS.get(line.line_type, "note")
        yield Line(kind, line.source_line_no, line.target_line_no, seen(line.value.rstrip("\n")))
