"""Runs every skill on the sample repository and compares what it says with what is known.

A program: prints one JSON object, `{"suite", "version", "scores", "verdict", "misses"}`, and exits 0 whatever
the verdict is. A score is the share of the expected facts that came out.
"""

import importlib
import json
import os
import sys
import tempfile
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if not __package__:  # started as a program, from a folder of whatever name
    sys.modules["assessment"] = types.ModuleType("assessment")
    sys.modules["assessment"].__path__ = [str(ROOT)]

from assessment.evaluation.bench import Bench  # noqa: E402
from assessment.evaluation.sample_repository import PLANTED, build  # noqa: E402

SUITE, VERSION = "sample-repository", "1.0.0"
SKILLS = ("inventory", "history", "code", "dependencies", "compose", "publish")
EXPECTED = Path(__file__).with_name("expected.json")
MISSING = "(missing)"


def main() -> int:
    """Print the record of one evaluation."""
    with tempfile.TemporaryDirectory(prefix="factory-evaluation-") as folder:
        sys.stdout.write(json.dumps(evaluate(Path(folder)), sort_keys=True) + "\n")
    return 0


def evaluate(folder: Path) -> dict[str, Any]:
    """Return the scores of all skills, each between 0 and 1."""
    build(folder / "shop")
    os.environ["FACTORY_ARTIFACT_REPOSITORY"] = str(folder / "artifacts.git")
    checks = {name: list(_checks(name, folder)) for name in SKILLS}
    scores = {name: _score(found) for name, found in checks.items()}
    misses = [f"{name}: {what}" for name, found in checks.items() for what, held in found if not held]
    verdict = "pass" if not misses else "fail"
    return {"suite": SUITE, "version": VERSION, "scores": scores, "verdict": verdict, "misses": misses[:50]}


def _score(checks: list[tuple[str, bool]]) -> float:
    return round(sum(held for _, held in checks) / len(checks), 4) if checks else 0.0


_outputs: dict[str, Any] = {}


def _checks(name: str, folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield each expected fact, and whether it came out."""
    if name == "inventory":
        _outputs.clear()
    bench = Bench(folder / name, {"repository": str(folder / "shop")}, dict(_outputs))
    if name == "publish":
        bench.answers = [("request_changes", "name the owner of the customs"), ("approve", "")]
    expected = json.loads(EXPECTED.read_text())[name]
    try:
        skill = importlib.import_module(f"assessment.skills.{name}")
        output = _outputs[name] = skill.run(bench)
    except Exception as fault:
        yield f"it failed: {type(fault).__name__}: {fault}"[:300], False
        return
    for path, wanted in expected.items():
        found = _at(output, path)
        yield f"{path} is {json.dumps(found)[:200]}, not {json.dumps(wanted)[:200]}", found == wanted
    whole = json.dumps([output, bench.proposals])
    yield "a secret's value leaked", not any(value in whole for value in PLANTED.values())
    yield from _MORE.get(name, _nothing)(output, bench)


def _at(value: Any, path: str) -> Any:
    """`languages.0.code`: members and places."""
    for part in path.split("."):
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, Mapping) and part in value:
            value = value[part]
        else:
            return MISSING
    return value


def _nothing(output: Any, bench: Bench) -> Iterator[tuple[str, bool]]:
    return iter(())


def _composed(output: Any, bench: Bench) -> Iterator[tuple[str, bool]]:
    """Check that facts always render to one report, and that it holds what matters."""
    render = importlib.import_module("assessment.skills.compose").render
    first, again = render(output["report"]), render(output["report"])
    yield "two renderings differ", first == again
    for wanted in (
        "# Assessment of shop",
        "`src/shop/settings.py:4`",
        "src/shop/customs.py",
        "| Ada Counter |",
    ):
        yield f"the report does not say {wanted}", wanted in first["report.md"]
    yield "report.json is not the report", json.loads(first["report.json"])["runId"] == bench.run_id


def _published(output: Any, bench: Bench) -> Iterator[tuple[str, bool]]:
    """Check that exactly what was proposed last was done, with the reviewer's words in it."""
    first, last = bench.proposals
    with bench.tool("git-diff") as call:
        argv = ["git", f"--git-dir={output['repository']}", "diff", last["baseCommit"], output["commit"]]
        diff = call.run(argv).stdout
    yield "the commit is not the approved diff", diff == last["diff"].encode()
    yield "the second proposal is the first", bench.digest(first) != bench.digest(last)
    yield "the reviewer's words are missing", "name the owner of the customs" in last["diff"]
    yield "not exactly one effect", [item["commit"] for item in bench.effects] == [output["commit"]]


_MORE: dict[str, Callable[[Any, Bench], Iterator[tuple[str, bool]]]] = {
    "compose": _composed,
    "publish": _published,
}

if __name__ == "__main__":
    sys.exit(main())
