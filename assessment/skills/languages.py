"""Languages by extension, name and shebang; lines of code, comment and blank; what is test or vendored."""

import re
from dataclasses import dataclass
from io import BytesIO

from identify import identify


@dataclass(frozen=True)
class Language:
    """Name a language, and how it marks its comments."""

    name: str
    line: tuple[str, ...] = ()
    blocks: tuple[tuple[str, str], ...] = ()


_SLASHES = ("//",)
_STARS = (("/*", "*/"),)
_HASH = ("#",)
_XML = (("<!--", "-->"),)

# name: (tags of `identify`, line comments, block comments). Of several tags the first language here counts.
_TABLE: dict[str, tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]]] = {
    "Python": ("python pyi", _HASH, (('"""', '"""'), ("'''", "'''"))),
    "JavaScript": ("javascript jsx", _SLASHES, _STARS),
    "TypeScript": ("ts tsx", _SLASHES, _STARS),
    "Java": ("java", _SLASHES, _STARS),
    "Kotlin": ("kotlin", _SLASHES, _STARS),
    "Scala": ("scala", _SLASHES, _STARS),
    "Groovy": ("groovy", _SLASHES, _STARS),
    "Go": ("go", _SLASHES, _STARS),
    "Rust": ("rust", _SLASHES, _STARS),
    "Objective-C": ("objective-c objective-c++", _SLASHES, _STARS),
    "C": ("c", _SLASHES, _STARS),
    "C++": ("c++", _SLASHES, _STARS),
    "C#": ("c#", _SLASHES, _STARS),
    "Swift": ("swift", _SLASHES, _STARS),
    "Dart": ("dart", _SLASHES, _STARS),
    "PHP": ("php", ("//", "#"), _STARS),
    "Ruby": ("ruby", _HASH, (("=begin", "=end"),)),
    "Perl": ("perl", _HASH, (("=pod", "=cut"),)),
    "Shell": ("shell", _HASH, ()),
    "PowerShell": ("powershell", _HASH, (("<#", "#>"),)),
    "Lua": ("lua", ("--",), (("--[[", "]]"),)),
    "R": ("r", _HASH, ()),
    "Julia": ("julia", _HASH, (("#=", "=#"),)),
    "Elixir": ("elixir", _HASH, ()),
    "Erlang": ("erlang", ("%",), ()),
    "Haskell": ("haskell", ("--",), (("{-", "-}"),)),
    "OCaml": ("ocaml", (), (("(*", "*)"),)),
    "F#": ("f#", ("//",), (("(*", "*)"),)),
    "Clojure": ("clojure", (";",), ()),
    "Lisp": ("scheme", (";",), ()),
    "Visual Basic": ("vb", ("'",), ()),
    "Fortran": ("fortran", ("!",), ()),
    "Zig": ("zig", ("//",), ()),
    "Solidity": ("solidity", _SLASHES, _STARS),
    "SQL": ("sql", ("--",), _STARS),
    "HTML": ("html", (), _XML),
    "Vue": ("vue", ("//",), _XML),
    "Svelte": ("svelte", ("//",), _XML),
    "CSS": ("css", (), _STARS),
    "Sass": ("scss sass less", _SLASHES, _STARS),
    "XML": ("xml", (), _XML),
    "YAML": ("yaml", _HASH, ()),
    "TOML": ("toml", _HASH, ()),
    "JSON": ("json json5", (), ()),
    "INI": ("ini java-properties", ("#", ";"), ()),
    "Markdown": ("markdown", (), _XML),
    "reStructuredText": ("rst", (), ()),
    "Protocol Buffers": ("proto", _SLASHES, _STARS),
    "GraphQL": ("graphql", _HASH, ()),
    "Terraform": ("terraform hcl", ("#", "//"), _STARS),
    "Nix": ("nix", _HASH, _STARS),
    "CMake": ("cmake", _HASH, ()),
    "Template": ("jinja mustache handlebars erb ejs", (), ()),
    "Make": ("makefile", _HASH, ()),
    "Docker": ("dockerfile", _HASH, ()),
}
LANGUAGES = {name: Language(name, line, blocks) for name, (_, line, blocks) in _TABLE.items()}
_BY_TAG = {tag: LANGUAGES[name] for name, (tags, _, _) in _TABLE.items() for tag in tags.split()}
_UNTAGGED = {
    ext: LANGUAGES[name]
    for name, exts in {
        "TypeScript": "mts cts", "Shell": "ksh", "F#": "fsi", "Lisp": "lisp el rkt", "Visual Basic": "bas",
        "Fortran": "f", "JSON": "jsonc", "INI": "cfg conf", "GraphQL": "gql", "Template": "tmpl",
    }.items()
    for ext in exts.split()
}  # fmt: skip
"""Extensions that `identify` does not know, or only as text."""
PROSE_AND_DATA = {
    "Markdown", "reStructuredText", "JSON", "YAML", "TOML", "INI", "XML", "HTML", "CSS", "Template",
}  # fmt: skip

_VENDORED = re.compile(
    r"(^|/)(vendor|vendored|node_modules|third[_-]?party|bower_components|\.yarn|Pods|site-packages)/"
    r"|\.min\.(js|css)$|(^|/)(dist|build)/.*\.(js|css)$|\.(bundle|chunk)\.js$"
    r"|_pb2(_grpc)?\.pyi?$|\.pb\.go$|\.g\.(cs|dart)$|\.generated\.\w+$"
    r"|(^|/)(package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|composer\.lock|Cargo\.lock"
    r"|poetry\.lock|uv\.lock|Pipfile\.lock|Gemfile\.lock|go\.sum)$"
)
_TEST = re.compile(
    r"(^|/)(tests?|__tests__|specs?|testing|testdata|fixtures|e2e|samples?|examples?)/"
    r"|(^|/)(test_[^/]*|conftest)\.py$|_tests?\.(py|go|rb|c|cc|cpp|exs|dart)$"
    r"|[._-](test|spec)s?\.[cm]?[jt]sx?$|_spec\.rb$|(Tests?|Spec|IT)\.(java|kt|scala|cs|swift|php|groovy)$"
)


def language_of(path: str, content: bytes = b"") -> Language | None:
    """Return the language by file name, then extension, then shebang."""
    tags = identify.tags_from_filename(path)
    untagged = _UNTAGGED.get(path.rpartition(".")[2].lower()) if "." in path.rpartition("/")[2] else None
    if not tags and not untagged and content.startswith(b"#!"):
        command = identify.parse_shebang(BytesIO(content))
        tags = identify.tags_from_interpreter(command[0]) if command else set()
    return next((language for tag, language in _BY_TAG.items() if tag in tags), untagged)


def is_vendored(path: str) -> bool:
    """Tell somebody else's code, or a machine's."""
    return bool(_VENDORED.search(path))


def is_test(path: str) -> bool:
    """Tell a test by the customs of the common ecosystems."""
    return bool(_TEST.search(path))


@dataclass
class LineCounts:
    """Count lines of each kind."""

    code: int = 0
    comment: int = 0
    blank: int = 0

    def add(self, other: "LineCounts") -> None:
        """Sum up."""
        self.code += other.code
        self.comment += other.comment
        self.blank += other.blank


def count_lines(language: Language, text: str) -> LineCounts:
    """Count a line with any code on it as code; one wholly inside or made of comment as comment."""
    lines = LineCounts()
    closing = ""
    for raw in text.splitlines():
        line = raw.strip()
        if not line:
            lines.blank += 1
        elif closing:
            lines.comment += 1
            closing = "" if closing in line else closing
        elif line.startswith(language.line):
            lines.comment += 1
        else:
            closing = _opened(language, line)
            comment_only = any(line.startswith(start) for start, _ in language.blocks)
            lines.comment += comment_only
            lines.code += not comment_only
    return lines


def _opened(language: Language, line: str) -> str:
    """Return the end marker of a block comment that this line begins and does not end."""
    for start, end in language.blocks:
        if line.startswith(start) and end not in line[len(start) :]:
            return end
        if start != end and start in line and end not in line.split(start, 1)[1] and _outside(line, start):
            return end
    return ""


def _outside(line: str, start: str) -> bool:
    """Guess that the marker is not inside a string: an even number of quotes before it."""
    before = line.split(start, 1)[0]
    return before.count('"') % 2 == 0 and before.count("'") % 2 == 0
