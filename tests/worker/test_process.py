"""The worker as a process, and its walls."""

import ast
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.worker.surface import Surface

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
HOUSE = {
    "factory",
    "projects",
    "approvals",
    "registry",
    "usage",
    "notifications",
    "config",
    "django",
    "rest_framework",
}


def command(url: str, token: Path) -> list[str]:
    return [sys.executable, "-m", "runs.worker", "--url", url, "--token-file", str(token), "--name", "w1"]


def test_drains_and_ends_well_on_sigterm(surface: Surface, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a.b.c")
    environment = {**os.environ, "HOME": str(tmp_path)}
    process = subprocess.Popen(
        command(surface.url, token), cwd=ROOT, env=environment, stderr=subprocess.DEVNULL
    )
    try:
        surface.wait_for("/poll")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        surface.wait_for("/drain")
    finally:
        process.kill()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--url", "plane"], "--url must be the worker surface"),
        (["--url", "http://x/factory", "--token-file", "/nowhere"], "--token-file must name a file"),
    ],
)
def test_says_what_is_wrong_with_its_options(arguments: list[str], said: str) -> None:
    argv = [sys.executable, "-m", "runs.worker", *arguments]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr


def test_imports_nothing_of_the_house() -> None:
    found = {
        (path.name, name.split(".")[0])
        for path in (ROOT / "runs/worker").glob("*.py")
        for name in imported(ast.parse(path.read_text()))
        if name.split(".")[0] in HOUSE or (name.startswith("runs.") and not name.startswith("runs.worker"))
    }
    assert found == set()


def imported(tree: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


def test_its_tools_end_with_it_however_it_ends(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\nfrom runs.worker.tools import ToolCall\n"
        f"call = ToolCall('t', Path({str(tmp_path)!r}), lambda: None)\n"
        "call.run(['sh', '-c', 'echo $$ > pid; exec sleep 600'])\n"
    )
    worker = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    pid = tmp_path / "pid"
    wait_until(lambda: pid.exists() and pid.read_text().strip() != "")
    worker.kill()
    worker.wait()
    wait_until(lambda: not alive(int(pid.read_text())))


def wait_until(held: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not held():
        assert time.monotonic() < until
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Running; a zombie that nobody has collected is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
