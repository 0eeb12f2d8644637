"""Syntax colours of somebody else's text, bounded: colour is a comfort, and reading never waits for it."""

import time
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Generic, Keyword, Literal, Name, Number, String

from factory.console.spans import Token

MOST_CHARACTERS = 200_000
MOST_AT_ONCE = 8_000
LONGEST_LINE = 400
SECONDS = 0.7
"""Of the processor, so that a busy machine shows the same page as an idle one."""

LEXERS = {
    "bash": ("sh", "bash", "zsh"),
    "c": ("c", "h"),
    "cpp": ("cc", "cpp", "cxx", "hpp"),
    "csharp": ("cs",),
    "css": ("css",),
    "docker": ("dockerfile",),
    "go": ("go",),
    "html": ("html", "htm"),
    "ini": ("ini", "cfg", "conf", "properties"),
    "java": ("java",),
    "javascript": ("js", "mjs", "cjs", "jsx"),
    "json": ("json",),
    "kotlin": ("kt", "kts"),
    "make": ("makefile", "mk"),
    "markdown": ("md", "markdown"),
    "php": ("php",),
    "python": ("py", "pyi"),
    "ruby": ("rb", "rake"),
    "rust": ("rs",),
    "scala": ("scala",),
    "sql": ("sql",),
    "swift": ("swift",),
    "terraform": ("tf", "hcl"),
    "toml": ("toml",),
    "typescript": ("ts", "tsx"),
    "xml": ("xml", "svg"),
    "yaml": ("yaml", "yml"),
}
"""Which languages are coloured. Nothing is guessed from a text: that would let a text choose its reader."""
BY_EXTENSION = {ending: name for name, endings in LEXERS.items() for ending in endings}

CLASSES = (
    (Comment, "tc"),
    (Keyword, "tk"),
    (String, "ts"),
    (Number, "tm"),
    (Literal, "ts"),
    (Name.Function, "tn"),
    (Name.Class, "tn"),
    (Name.Tag, "tn"),
    (Name.Attribute, "tn"),
    (Name.Decorator, "tn"),
    (Name.Builtin, "tn"),
    (Generic.Heading, "tk"),
    (Generic.Subheading, "tk"),
)


class Palette:
    """The colours of one page, with what they may cost in all; past that, lines stay plain."""

    def __init__(self) -> None:
        self.left = MOST_CHARACTERS
        self.seconds = SECONDS

    def colour(self, path: str, lines: Sequence[str]) -> list[list[Token]]:
        """The tokens of each line, as they would stand in a file of that name."""
        name = _language(path)
        if not name:
            return [plain(line) for line in lines]
        return [told for some in _portions(lines) for told in self._portion(name, some)]

    def _portion(self, name: str, lines: Sequence[str]) -> list[list[Token]]:
        size = sum(map(len, lines)) + len(lines)
        if size > self.left or any(len(one) > LONGEST_LINE for one in lines):
            return [plain(line) for line in lines]
        self.left -= size
        text = "\n".join(lines)
        lexer, began = _lexer(name), time.thread_time()
        coloured = list(_by_line(self._tokens(lexer, text, began + self.seconds)))
        self.seconds -= time.thread_time() - began
        same = ["".join(part for _, part in line) for line in coloured] == list(lines)
        return coloured if same else [plain(line) for line in lines]

    def _tokens(self, lexer: Any, text: str, until: float) -> Iterator[Token]:
        done = 0
        for index, kind, value in lexer.get_tokens_unprocessed(text):
            if index != done or time.thread_time() > until:
                break
            yield _class(kind), value
            done += len(value)
        yield "", text[done:]


def plain(line: str) -> list[Token]:
    """A line without colours."""
    return [("", line)]


def _portions(lines: Sequence[str]) -> Iterator[list[str]]:
    """A text in pieces of a bounded size: how long a pattern may look is bounded by what it is given."""
    some: list[str] = []
    size = 0
    for line in lines:
        if some and size + len(line) > MOST_AT_ONCE:
            yield some
            some, size = [], 0
        some.append(line)
        size += len(line) + 1
    if some:
        yield some


def _by_line(tokens: Iterator[Token]) -> Iterator[list[Token]]:
    line: list[Token] = []
    for css, text in tokens:
        first, *more = text.split("\n")
        line.append((css, first))
        for part in more:
            yield line
            line = [(css, part)]
    yield line


def _language(path: str) -> str:
    base = path.rsplit("/", 1)[-1].lower()
    return BY_EXTENSION.get(base.rsplit(".", 1)[-1], "")


@cache
def _lexer(name: str) -> Any:
    return get_lexer_by_name(name)


def _class(kind: Any) -> str:
    return next((css for group, css in CLASSES if kind in group), "")
