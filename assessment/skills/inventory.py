"""What is in the repository: languages, sizes, tests, licence, CI and documentation."""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .gitstore import MOST_BYTES_OF_A_FILE, Repository, TreeEntry, is_binary, text_of, without_credentials
from .languages import PROSE_AND_DATA, LineCounts, count_lines, is_test, is_vendored, language_of
from .licences import identify, is_licence_file

if TYPE_CHECKING:
    from runs.worker.context import SkillContext

_CI = (
    (r"^\.github/workflows/[^/]+\.ya?ml$", "GitHub Actions"),
    (r"^\.gitlab-ci\.ya?ml$", "GitLab CI"),
    (r"^\.circleci/config\.ya?ml$", "CircleCI"),
    (r"^azure-pipelines.*\.ya?ml$", "Azure Pipelines"),
    (r"^Jenkinsfile$", "Jenkins"),
    (r"^\.travis\.ya?ml$", "Travis CI"),
    (r"^bitbucket-pipelines\.ya?ml$", "Bitbucket Pipelines"),
    (r"^\.buildkite/.+\.ya?ml$", "Buildkite"),
    (r"^\.drone\.ya?ml$", "Drone"),
    (r"^\.woodpecker(\.ya?ml$|/)", "Woodpecker"),
    (r"^\.ci/", "a .ci folder"),
)
_DOCS = {
    "readme": r"^readme(\.\w+)?$",
    "contributing": r"^(\.github/|docs/)?contributing(\.\w+)?$",
    "changelog": r"^(changelog|changes|history|news|releases?)(\.\w+)?$",
    "security": r"^(\.github/|docs/)?security(\.\w+)?$",
    "codeOfConduct": r"^(\.github/|docs/)?code[_-]of[_-]conduct(\.\w+)?$",
}


@dataclass
class _Tally:
    """Add up what the walk over the files sees."""

    lines: dict[str, LineCounts] = field(default_factory=lambda: defaultdict(LineCounts))
    files: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    size: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    production_code: int = 0
    test_code: int = 0
    test_files: int = 0
    binary_files: int = 0
    licence: dict[str, str] | None = None
    readme_words: int = 0


def run(context: "SkillContext") -> dict[str, Any]:
    """Resolve the revision once for the whole run, and look at its tree."""
    asked = str(context.input.get("revision") or "HEAD")
    repository = Repository(context, str(context.input["repository"]))
    commit = repository.resolve(asked)
    repository.fetch_commit(commit)
    shown = repository.git("git-show", "show", "-s", "--format=%cI%n%s", commit).decode("utf-8", "replace")
    committed_at, _, subject = shown.partition("\n")
    entries = repository.files(commit)
    tally = _Tally()
    own = [entry for entry in entries if not is_vendored(entry.path)]
    for entry, content in repository.read(own):
        context.check()
        _add(tally, entry, content)
    head = {
        "repository": without_credentials(str(context.input["repository"])),
        "revision": asked,
        "commit": commit,
        "committedAt": committed_at.strip(),
        "subject": subject.strip()[:200],
    }
    return {**head, **_facts(tally, entries), "ci": _ci(entries), "docs": _docs(entries, tally)}


def _add(tally: _Tally, entry: TreeEntry, content: bytes) -> None:
    if is_binary(content):
        tally.binary_files += 1
        return
    text = text_of(content)
    if is_licence_file(entry.path) and tally.licence is None:
        tally.licence = {"spdx": identify(text) or "unknown", "file": entry.path}
    if re.match(_DOCS["readme"], entry.path, re.IGNORECASE):
        tally.readme_words = len(text.split())
    language = language_of(entry.path, content)
    if language is None:
        return
    lines = count_lines(language, text)
    tally.lines[language.name].add(lines)
    tally.files[language.name] += 1
    tally.size[language.name] += entry.size
    if language.name in PROSE_AND_DATA:
        return
    if is_test(entry.path):
        tally.test_files += 1
        tally.test_code += lines.code
    else:
        tally.production_code += lines.code


def _facts(tally: _Tally, entries: list[TreeEntry]) -> dict[str, Any]:
    by_code = sorted(tally.lines, key=lambda name: (-tally.lines[name].code, name))
    largest = sorted(entries, key=lambda entry: (-entry.size, entry.path))[:12]
    ratio = tally.test_code / tally.production_code if tally.production_code else None
    return {
        "files": len(entries),
        "bytes": sum(entry.size for entry in entries),
        "binaryFiles": tally.binary_files,
        "vendoredFiles": sum(is_vendored(entry.path) for entry in entries),
        "unreadFiles": sum(entry.size > MOST_BYTES_OF_A_FILE for entry in entries),
        "languages": [_language(tally, name) for name in by_code[:20]],
        "code": tally.production_code,
        "tests": {
            "files": tally.test_files,
            "code": tally.test_code,
            "ratio": None if ratio is None else round(ratio, 3),
        },
        "largestFiles": [{"path": entry.path[:200], "bytes": entry.size} for entry in largest],
        "licence": tally.licence,
    }


def _language(tally: _Tally, name: str) -> dict[str, Any]:
    lines = tally.lines[name]
    return {
        "language": name,
        "files": tally.files[name],
        "bytes": tally.size[name],
        "code": lines.code,
        "comment": lines.comment,
        "blank": lines.blank,
        "prose": name in PROSE_AND_DATA,
    }


def _ci(entries: list[TreeEntry]) -> list[dict[str, str]]:
    found: dict[str, str] = {}
    for entry in entries:
        for pattern, system in _CI:
            if re.match(pattern, entry.path):
                found.setdefault(system, entry.path)
    return [{"system": system, "path": path[:200]} for system, path in sorted(found.items())]


def _docs(entries: list[TreeEntry], tally: _Tally) -> dict[str, Any]:
    found: dict[str, Any] = dict.fromkeys(_DOCS)
    for entry in entries:
        for kind, pattern in _DOCS.items():
            if found[kind] is None and re.match(pattern, entry.path, re.IGNORECASE):
                found[kind] = entry.path
    folder = sum(entry.path.startswith(("docs/", "doc/")) for entry in entries)
    return {**found, "readmeWords": tally.readme_words, "files": folder}
