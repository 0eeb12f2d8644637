"""What one app may know of another, and what no file may know at all."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from factory.kernel.permissions import table
from tests.architecture.source import APPS, ROOT, Source, calls, sources

OPEN_ROOMS = {"operations", "selectors", "events", "states", "subjects"}
EXTRA = {("registry", "definitions")}
"""Pure code that others may use: how a workflow's definition is judged."""


def imports(source: Source) -> list[tuple[str, ast.AST]]:
    found: list[tuple[str, ast.AST]] = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, node) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found += [(f"{node.module}.{alias.name}", node) for alias in node.names]
    return found


@pytest.mark.requirement("POL-01")
def test_apps_use_only_the_open_rooms_of_each_other() -> None:
    crossings = []
    for source in (s for s in sources() if s.is_in(*APPS)):
        home = source.path.relative_to(ROOT).parts[0]
        for name, node in imports(source):
            app, _, rest = name.partition(".")
            room = rest.split(".")[0]
            if app in APPS and app != home and room not in OPEN_ROOMS and (app, room) not in EXTRA:
                crossings.append(f"{source.at(node)} imports {name}")
    assert crossings == []


@pytest.mark.requirement("WFE-01")
def test_the_engine_is_asked_what_comes_next_at_one_place() -> None:
    """By its front door alone: what a graph means is decided nowhere else, and by no row."""
    others = [source for source in sources() if not source.is_in("runs/engine")]
    parts = {f"runs.engine.{path.stem}" for path in (ROOT / "runs" / "engine").glob("[a-z]*.py")}
    inside = [s.at(n) for s in others for name, n in imports(s) if ".".join(name.split(".")[:3]) in parts]
    assert inside == []
    assert [s.name for s in others for _ in calls(s, "plan")] == ["runs/operations/advancing.py"]


AT_WORK = {
    *("aiohttp", "anthropic", "assessment", "git", "http", "httpx", "litellm", "multiprocessing", "openai"),
    *("requests", "socket", "subprocess", "urllib3"),
}


@pytest.mark.requirement("RUN-30")
def test_run_control_does_no_work_itself() -> None:
    """No model, tool or process is within its reach; an outcome comes from a worker's call or from time."""
    ours = [source for source in sources() if source.is_in("runs") and not source.is_in("runs/worker")]
    reached = [
        source.at(node)
        for source in ours
        for name, node in imports(source)
        if name.split(".")[0] in AT_WORK or name.startswith(("runs.worker", "urllib.request"))
    ]
    assert reached == []
    assert table["ReportAttemptOutcome"].kinds == {"worker"}


def tracked() -> list[Path]:
    """What is in the repository; everything but the usual litter where there is no git."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return [ROOT / name for name in done.stdout.split("\0") if name]
    litter = {".git", ".venv", "var", "__pycache__"}
    return [f for f in ROOT.rglob("*") if f.is_file() and not litter & set(f.relative_to(ROOT).parts)]


def test_no_file_names_a_place_of_somebodys_machine() -> None:
    # Written in pieces, or this file would find itself.
    places = re.compile(r"(^|[^a-z.])/(" + "|".join(("wo" + "rk", "fa" + "rm", "home" + "/[a-z]+")) + r")/")
    found = []
    for file in tracked():
        try:
            lines = file.read_text().splitlines()
        except (UnicodeDecodeError, FileNotFoundError):
            continue
        found += [f"{file.relative_to(ROOT)}:{n}" for n, line in enumerate(lines, 1) if places.search(line)]
    assert found == []


def test_no_two_tests_of_a_module_share_a_name() -> None:
    """The later one would silently replace the earlier."""
    twice = []
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        names = [n.name for n in ast.parse(file.read_text()).body if isinstance(n, ast.FunctionDef)]
        twice += [
            f"{file.name}: {name}" for name in set(names) if names.count(name) > 1 and name.startswith("test")
        ]
    assert twice == []
