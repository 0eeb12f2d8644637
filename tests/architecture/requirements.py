"""The requirements with their states (tests/requirements.txt), and the tests that carry their markers.

python -m tests.architecture.requirements      the requirements that no test proves
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "tests" / "requirements.txt"
LINE = re.compile(
    r"(?P<id>[A-Z]+-\d\d) (?P<state>proved|missing|dropped) \| (?P<text>.+?)(?: \| (?P<why>.+))?"
)


@dataclass(frozen=True)
class Requirement:
    """One line of the file; `why` says what is missing, or which ADR dropped it."""

    id: str
    state: str
    text: str
    why: str


def lines(text: str) -> Iterator[Requirement]:
    """Yield the requirements of such a file; raise a `ValueError` at a line that says none."""
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if match is None or (match["state"] == "proved") != (match["why"] is None):
            raise ValueError(f"No requirement with its state, and a reason unless it is proved: {line}")
        yield Requirement(match["id"], match["state"], match["text"], match["why"] or "")


@cache
def requirements() -> tuple[Requirement, ...]:
    return tuple(lines(FILE.read_text()))


@cache
def marked() -> Mapping[str, tuple[str, ...]]:
    """Return each id that is marked somewhere, with the pytest addresses of the tests that carry it."""
    places: dict[str, set[str]] = defaultdict(set)
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        text = file.read_text()
        if ".requirement(" in text:
            for node in ast.parse(text).body:
                _collect(places, node, str(file.relative_to(ROOT)))
    return {id: tuple(sorted(found)) for id, found in sorted(places.items())}


def _collect(places: dict[str, set[str]], node: ast.stmt, address: str) -> None:
    """Add the marks of one statement: of a test, of a class and the tests in it, or of an assignment."""
    name = ""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        name = f"::{node.name}"
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        name = "" if node.targets[0].id == "pytestmark" else f"::{node.targets[0].id}"
    inner = node.body if isinstance(node, ast.ClassDef) else []
    within = {id(part) for child in inner for part in ast.walk(child)}
    for call in ast.walk(node):
        if id(call) not in within and isinstance(call, ast.Call) and _marks(call):
            for argument in call.args:
                places[ast.literal_eval(argument)].add(address + name)
    for child in inner:
        _collect(places, child, address + name)


def _marks(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "requirement"


def main() -> None:
    for state in ("missing", "dropped"):
        these = [each for each in requirements() if each.state == state]
        sys.stdout.write(f"{len(these)} requirements {state}: {' '.join(each.id for each in these)}\n")


if __name__ == "__main__":
    main()
