"""How the code is: complexity by function, long functions, left-over notes, and what looks like a secret."""

import json
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .gitstore import Repository, is_binary, of_predecessor, text_of
from .languages import is_test, is_vendored, language_of
from .secretscan import Secret, scan

if TYPE_CHECKING:
    from runs.worker.context import SkillContext

ANALYSED = {
    "Python", "JavaScript", "TypeScript", "Java", "Kotlin", "Scala", "Go", "Rust", "C", "C++", "C#",
    "Objective-C", "Swift", "PHP", "Ruby", "Lua", "Erlang", "Perl", "R", "Zig", "Solidity", "Fortran", "Vue",
}  # fmt: skip
PROGRAM = "skills/complexity.py"
BATCH = 150
BATCH_SECONDS = 180.0
MOST_BYTES_ANALYSED = 400_000
COMPLEX = 10
LONG = 60
RANGES = ((1, 5), (6, 10), (11, 20), (21, 50), (51, None))
_NOTE = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


@dataclass(frozen=True)
class Function:
    """A function as the analyser saw it."""

    path: str
    name: str
    line: int
    ccn: int
    nloc: int
    parameters: int

    def shown(self) -> dict[str, Any]:
        """For the report."""
        return {
            "name": self.name[:120],
            "path": self.path[:200],
            "line": self.line,
            "ccn": self.ccn,
            "nloc": self.nloc,
            "parameters": self.parameters,
            "test": is_test(self.path),
        }


def run(context: "SkillContext") -> dict[str, Any]:
    """Measure every function, and look at every line for secrets."""
    repository, commit = of_predecessor(context)
    repository.fetch_commit(commit)
    sources: list[tuple[str, str]] = []
    secrets: list[Secret] = []
    notes = 0
    for path, text in _texts(repository, commit):
        context.check()
        secrets += scan(path, text)
        language = language_of(path)
        if language and language.name in ANALYSED and len(text) <= MOST_BYTES_ANALYSED:
            sources.append((path, text))
            notes += len(_NOTE.findall(text))
    functions, failed = _measure(context, sources)
    return {
        **_complexity(functions),
        "analysedFiles": len(sources) - failed,
        "unanalysedFiles": failed,
        "notes": notes,
        "secretsFound": len(secrets),
        "secrets": [secret.shown() for secret in sorted(secrets, key=lambda found: found.rank)[:40]],
    }


def _texts(repository: Repository, commit: str) -> Iterable[tuple[str, str]]:
    own = [entry for entry in repository.files(commit) if not is_vendored(entry.path)]
    for entry, content in repository.read(own):
        if not is_binary(content):
            yield entry.path, text_of(content)


def _measure(context: "SkillContext", sources: Sequence[tuple[str, str]]) -> tuple[list[Function], int]:
    """In batches, so that a bad source spoils one batch and not the measurement."""
    program = context.files[PROGRAM].decode()
    functions: list[Function] = []
    failed = 0
    for start in range(0, len(sources), BATCH):
        batch = sources[start : start + BATCH]
        try:
            with context.tool("lizard") as call:
                call.details["files"] = len(batch)
                done = call.run(
                    [sys.executable, "-I", "-c", program],
                    stdin=json.dumps(batch).encode(),
                    timeout=BATCH_SECONDS,
                )
        except Exception as fault:
            if getattr(fault, "exit_code", "") == "":  # not the tool's own failure
                raise
            failed += len(batch)
            continue
        found = json.loads(done.stdout)
        functions += [Function(*item) for item in found["functions"]]
        failed += int(found["failed"])
    return functions, failed


def _complexity(functions: list[Function]) -> dict[str, Any]:
    own = [item for item in functions if not is_test(item.path)]
    by_ccn = sorted(functions, key=lambda item: (-item.ccn, -item.nloc, item.path, item.line))
    by_size = sorted(functions, key=lambda item: (-item.nloc, -item.ccn, item.path, item.line))
    return {
        "functions": len(functions),
        "complexity": _spread([item.ccn for item in own]),
        "length": _spread([item.nloc for item in own]),
        "distribution": [_range(own, low, high) for low, high in RANGES],
        "complexFunctions": [item.shown() for item in by_ccn if item.ccn > COMPLEX][:20],
        "complexFunctionsFound": sum(item.ccn > COMPLEX for item in functions),
        "longFunctions": [item.shown() for item in by_size if item.nloc > LONG][:15],
        "longFunctionsFound": sum(item.nloc > LONG for item in functions),
        "byFile": _by_file(own),
    }


def _spread(values: list[int]) -> dict[str, float]:
    if not values:
        return {"median": 0, "p90": 0, "max": 0}
    ordered = sorted(values)
    return {
        "median": statistics.median(ordered),
        "p90": ordered[min(len(ordered) - 1, int(len(ordered) * 0.9))],
        "max": ordered[-1],
    }


def _range(functions: list[Function], low: int, high: int | None) -> dict[str, Any]:
    number = sum(low <= item.ccn and (high is None or item.ccn <= high) for item in functions)
    return {"ccn": f"{low}+" if high is None else f"{low}-{high}", "functions": number}


def _by_file(functions: list[Function]) -> list[dict[str, Any]]:
    """Files with the most complexity above the mark: with the hotspots they say where work hurts."""
    worst: dict[str, int] = defaultdict(int)
    total: dict[str, int] = defaultdict(int)
    for item in functions:
        worst[item.path] = max(worst[item.path], item.ccn)
        total[item.path] += item.ccn
    ranked = sorted(worst, key=lambda path: (-worst[path], -total[path], path))[:60]
    return [{"path": path[:200], "worst": worst[path], "total": total[path]} for path in ranked]
