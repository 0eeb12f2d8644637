"""Languages by extension, name and shebang; lines of code, comment and blank; what is test or vendored."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True)
class Language:
    """How a language is called and how it comments."""

    name: str
    line: tuple[str, ...] = ()
    blocks: tuple[tuple[str, str], ...] = ()


_SLASHES = ("//",)
_STARS = (("/*", "*/"),)
_HASH = ("#",)
_XML = (("<!--", "-->"),)

# name: (extensions, line comments, block comments)
_TABLE: dict[str, tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]]] = {
    "Python": ("py pyi pyw", _HASH, (('"""', '"""'), ("'''", "'''"))),
    "JavaScript": ("js mjs cjs jsx", _SLASHES, _STARS),
    "TypeScript": ("ts tsx mts cts", _SLASHES, _STARS),
    "Java": ("java", _SLASHES, _STARS),
    "Kotlin": ("kt kts", _SLASHES, _STARS),
    "Scala": ("scala sc", _SLASHES, _STARS),
    "Groovy": ("groovy gradle", _SLASHES, _STARS),
    "Go": ("go", _SLASHES, _STARS),
    "Rust": ("rs", _SLASHES, _STARS),
    "C": ("c h", _SLASHES, _STARS),
    "C++": ("cc cpp cxx hpp hh hxx", _SLASHES, _STARS),
    "C#": ("cs", _SLASHES, _STARS),
    "Objective-C": ("m mm", _SLASHES, _STARS),
    "Swift": ("swift", _SLASHES, _STARS),
    "Dart": ("dart", _SLASHES, _STARS),
    "PHP": ("php", ("//", "#"), _STARS),
    "Ruby": ("rb rake gemspec", _HASH, (("=begin", "=end"),)),
    "Perl": ("pl pm", _HASH, (("=pod", "=cut"),)),
    "Shell": ("sh bash zsh ksh", _HASH, ()),
    "PowerShell": ("ps1 psm1", _HASH, (("<#", "#>"),)),
    "Lua": ("lua", ("--",), (("--[[", "]]"),)),
    "R": ("r", _HASH, ()),
    "Julia": ("jl", _HASH, (("#=", "=#"),)),
    "Elixir": ("ex exs", _HASH, ()),
    "Erlang": ("erl hrl", ("%",), ()),
    "Haskell": ("hs", ("--",), (("{-", "-}"),)),
    "OCaml": ("ml mli", (), (("(*", "*)"),)),
    "F#": ("fs fsi fsx", ("//",), (("(*", "*)"),)),
    "Clojure": ("clj cljs cljc edn", (";",), ()),
    "Lisp": ("lisp el scm rkt", (";",), ()),
    "Visual Basic": ("vb bas", ("'",), ()),
    "Fortran": ("f90 f95 f03 f", ("!",), ()),
    "Zig": ("zig", ("//",), ()),
    "Solidity": ("sol", _SLASHES, _STARS),
    "SQL": ("sql", ("--",), _STARS),
    "HTML": ("html htm xhtml", (), _XML),
    "Vue": ("vue", ("//",), _XML),
    "Svelte": ("svelte", ("//",), _XML),
    "CSS": ("css", (), _STARS),
    "Sass": ("scss sass less", _SLASHES, _STARS),
    "XML": ("xml xsd xsl xslt csproj props targets", (), _XML),
    "YAML": ("yml yaml", _HASH, ()),
    "TOML": ("toml", _HASH, ()),
    "JSON": ("json json5 jsonc", (), ()),
    "INI": ("ini cfg conf properties", ("#", ";"), ()),
    "Markdown": ("md markdown", (), _XML),
    "reStructuredText": ("rst", (), ()),
    "Protocol Buffers": ("proto", _SLASHES, _STARS),
    "GraphQL": ("graphql gql", _HASH, ()),
    "Terraform": ("tf tfvars hcl", ("#", "//"), _STARS),
    "Nix": ("nix", _HASH, _STARS),
    "CMake": ("cmake", _HASH, ()),
    "Template": ("j2 jinja jinja2 tmpl mustache hbs erb ejs", (), ()),
}
LANGUAGES = {name: Language(name, line, blocks) for name, (_, line, blocks) in _TABLE.items()}
LANGUAGES["Make"] = Language("Make", _HASH)
LANGUAGES["Docker"] = Language("Docker", _HASH)
_BY_EXTENSION = {ext: LANGUAGES[name] for name, (exts, _, _) in _TABLE.items() for ext in exts.split()}
_BY_NAME = {
    "makefile": LANGUAGES["Make"],
    "gnumakefile": LANGUAGES["Make"],
    "dockerfile": LANGUAGES["Docker"],
    "containerfile": LANGUAGES["Docker"],
    "rakefile": LANGUAGES["Ruby"],
    "gemfile": LANGUAGES["Ruby"],
    "vagrantfile": LANGUAGES["Ruby"],
    "jenkinsfile": LANGUAGES["Groovy"],
    "cmakelists.txt": LANGUAGES["CMake"],
}
_BY_INTERPRETER = {
    "python": "Python", "sh": "Shell", "bash": "Shell", "zsh": "Shell", "dash": "Shell", "ksh": "Shell",
    "node": "JavaScript", "deno": "TypeScript", "ruby": "Ruby", "perl": "Perl", "php": "PHP", "lua": "Lua",
}  # fmt: skip
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
    """By file name, then extension, then shebang."""
    name = PurePosixPath(path).name.lower()
    if name in _BY_NAME or name.startswith(("dockerfile.", "makefile.")):
        return _BY_NAME.get(name) or _BY_NAME[name.split(".")[0]]
    extension = name.rsplit(".", 1)[-1] if "." in name else ""
    return _BY_EXTENSION.get(extension) or _by_shebang(content)


def _by_shebang(content: bytes) -> Language | None:
    if not content.startswith(b"#!"):
        return None
    words = content[2:200].split(b"\n", 1)[0].decode("ascii", "replace").split()
    names = [PurePosixPath(word).name for word in words if not word.startswith("-")]
    for name in names:
        found = _BY_INTERPRETER.get(name.rstrip("0123456789."))
        if found:
            return LANGUAGES[found]
    return None


def is_vendored(path: str) -> bool:
    """Somebody else's code, or a machine's."""
    return bool(_VENDORED.search(path))


def is_test(path: str) -> bool:
    """By the customs of the common ecosystems."""
    return bool(_TEST.search(path))


@dataclass
class LineCounts:
    """How many lines of each kind."""

    code: int = 0
    comment: int = 0
    blank: int = 0

    def add(self, other: "LineCounts") -> None:
        """Sum up."""
        self.code += other.code
        self.comment += other.comment
        self.blank += other.blank


def count_lines(language: Language, text: str) -> LineCounts:
    """A line with any code on it is code; a line wholly inside or made of comment is comment."""
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
    """The end marker of a block comment that this line begins and does not end."""
    for start, end in language.blocks:
        if line.startswith(start) and end not in line[len(start) :]:
            return end
        if start != end and start in line and end not in line.split(start, 1)[1] and _outside(line, start):
            return end
    return ""


def _outside(line: str, start: str) -> bool:
    """A rough guess that the marker is not inside a string: an even number of quotes before it."""
    before = line.split(start, 1)[0]
    return before.count('"') % 2 == 0 and before.count("'") % 2 == 0
