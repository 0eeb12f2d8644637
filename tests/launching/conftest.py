"""A launcher as a person starts it: a process of its own, with folders and ports that nobody else uses."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from factory.embedded.system import free_port

ROOT = Path(__file__).resolve().parents[2]
READY = re.compile(r"^workers +http", re.MULTILINE)
SETTINGS = re.compile(r"^(FACTORY_|DATABASE_|REDIS_URL|SECRET_KEY|DJANGO_)")


class Launch:
    """One `manage.py up`, with what it has said so far."""

    def __init__(self, home: Path, *arguments: str, port: int | None = None, **variables: str) -> None:
        self.home, self.port = home, port or free_port()
        self.log = home / f"said-{time.monotonic_ns()}"
        environment = {k: v for k, v in os.environ.items() if not SETTINGS.match(k)} | variables
        command = [
            sys.executable, "manage.py", *(arguments or ("up",)),
            "--port", str(self.port), "--stream-port", str(free_port()),
        ]  # fmt: skip
        with self.log.open("w") as out:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=environment | {"FACTORY_HOME": str(home)}, stdin=subprocess.DEVNULL,
                stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    @property
    def said(self) -> str:
        return self.log.read_text()

    def wait_ready(self, seconds: float = 120) -> "Launch":
        self.wait_said(READY.pattern, seconds)
        return self

    def wait_said(self, pattern: str, seconds: float = 120) -> str:
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.said, re.MULTILINE)):
            assert self.process.poll() is None, self.said
            assert time.monotonic() < end, self.said
            time.sleep(0.1)
        return found.group(0)

    def stop(self, word: int = signal.SIGINT, seconds: float = 30) -> int:
        self.process.send_signal(word)
        return self.process.wait(seconds)


def left_over(home: Path) -> list[str]:
    """Every process that has this home in its command line or its environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            command = " ".join(process.cmdline())
            if str(home) in command or process.environ().get("FACTORY_HOME") == str(home):
                found.append(f"{process.pid} {command[:120]}")
        except psutil.Error:
            continue
    return found


Launcher = Callable[..., Launch]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """One folder for a module: going on with what the last launcher left is part of what is tested."""
    folder = Path(tempfile.mkdtemp(prefix="factory-launch-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def launch(home: Path) -> Iterator[Launcher]:
    """Start a launcher; whatever is left of it at the end of the test is ended."""
    started: list[Launch] = []

    def start(*arguments: str, port: int | None = None, **variables: str) -> Launch:
        started.append(Launch(home, *arguments, port=port, **variables))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.stop()
