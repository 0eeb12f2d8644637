"""Long texts for reading: the beginning is open, the rest folded, with a sentence of what is folded."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from factory.console.colours import Palette
from factory.console.spans import rendered

LONG = 100
HEAD = 70
"""Of what is longer than the first, so much stays open."""
MOST_LINES = 10_000

ROW = (
    '<tr class="{}"><td class="n">{}</td><td class="n">{}</td><td class="m">{}</td><td class="t">{}</td></tr>'
)
MARKS = {
    "add": SafeString('<span aria-hidden="true">+</span><span class="fc-hidden">added: </span>'),
    "del": SafeString('<span aria-hidden="true">−</span><span class="fc-hidden">removed: </span>'),
}


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line: its kind (add, del, same, hunk, note), its text, its numbers before and after."""

    kind: str
    text: str
    before: int | None = None
    after: int | None = None
    html: SafeString = field(default=SafeString(""), repr=False)

    @property
    def row(self) -> tuple[str, object, object, str, str]:
        return (
            self.kind,
            "" if self.before is None else self.before,
            "" if self.after is None else self.after,
            MARKS.get(self.kind, ""),
            self.html or rendered([("", self.text)]),
        )


@dataclass(frozen=True, slots=True)
class FoldedLines:
    """Some lines, open, or closed behind a sentence."""

    lines: Sequence[TextLine] = field(repr=False)
    says: str = ""

    @property
    def rows(self) -> SafeString:
        return format_html_join("", ROW, (line.row for line in self.lines))


def parts_of(lines: Sequence[TextLine]) -> tuple[FoldedLines, ...]:
    """The first lines open, the rest closed, cut where a hunk begins if one does so near by."""
    if len(lines) <= LONG:
        return (FoldedLines(lines),) if lines else ()
    near = [n for n in range(HEAD // 2, HEAD + 1) if lines[n].kind == "hunk"]
    cut = near[-1] if near else HEAD
    return FoldedLines(lines[:cut]), FoldedLines(lines[cut:], _says(lines[cut:]))


def _says(lines: Sequence[TextLine]) -> str:
    added, removed = (sum(line.kind == kind for line in lines) for kind in ("add", "del"))
    told = [f"{added} added" if added else "", f"{removed} removed" if removed else ""]
    counts = ", ".join(word for word in told if word)
    return f"{len(lines)} more lines{': ' + counts if counts else ''}"


@dataclass(frozen=True, slots=True)
class FoldedText:
    """A text in lines, coloured as a file of some name would be."""

    parts: tuple[FoldedLines, ...]
    cut: int = 0

    def __bool__(self) -> bool:
        return bool(self.parts)


def text_of(text: str, name: str, palette: Palette) -> FoldedText:
    """A long text of somebody else for the page, such as JSON that was hashed."""
    lines = text.split("\n")
    kept = lines[:MOST_LINES]
    tokens = palette.colour(name, kept)
    drawn = [
        TextLine("same", line, None, number, rendered(told))
        for number, (line, told) in enumerate(zip(kept, tokens, strict=True), start=1)
    ]
    return FoldedText(parts_of(drawn), len(lines) - len(kept))
