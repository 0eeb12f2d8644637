"""The processes of the product as children of one launcher.

Each child has a session of its own, so that the terminal's Ctrl-C reaches the launcher alone, and is told by
the kernel when the launcher dies, however it dies: no child outlives it.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from factory.embedded.system import EmbeddedError, make_folder

PR_SET_PDEATHSIG = 1
MOST_RESTARTS = 5
RESTART_WINDOW_SECONDS = 60.0
TAIL_LINES = 12
BIGGEST_LOG = 20_000_000


@dataclass
class Child:
    """One process: how it is started, and how it has been doing."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    process: "subprocess.Popen[bytes] | None" = None
    starts: list[float] = field(default_factory=list)

    def start(self, folder: Path) -> int:
        """Must be called from the launcher's main thread: the kernel ties a child's life to a thread."""
        self.starts.append(time.monotonic())
        launcher = os.getpid()
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                list(self.command), cwd=folder, env=dict(self.environment),
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
                preexec_fn=lambda: die_with(launcher),
            )  # fmt: skip
        return self.process.pid

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def signal(self, number: int) -> None:
        if self.process is not None and self.is_running():
            os.killpg(self.process.pid, number) if number == signal.SIGKILL else self.process.send_signal(
                number
            )

    def last_words(self) -> str:
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except OSError:
            return ""
        return "\n".join(f"    {line[:400]}" for line in lines[-TAIL_LINES:])

    def restarts_lately(self) -> int:
        since = time.monotonic() - RESTART_WINDOW_SECONDS
        return sum(1 for at in self.starts if at > since) - 1


def die_with(launcher: int) -> None:
    """Run in the child before it becomes its program (Linux; elsewhere Ctrl-C and SIGTERM must do)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != launcher:  # it died in between
            os._exit(1)


class Supervisor:
    """Starts children, starts them again when they end by themselves, and stops them all."""

    def __init__(
        self, folder: Path, logs: Path, *, say: Callable[[str], None], include: Callable[[int], None]
    ) -> None:
        """`include` is told of each process: that is the keeper, which sees to it that none is left over."""
        self._folder, self._logs, self._say, self._include = folder, logs, say, include
        self.children: dict[str, Child] = {}
        make_folder(logs)

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> Child:
        log = self._logs / f"{name}.log"
        if log.exists() and log.stat().st_size > BIGGEST_LOG:
            log.unlink()
        child = self.children[name] = Child(name, command, environment, log)
        self._include(child.start(self._folder))
        return child

    def check(self) -> None:
        """Start again whoever has ended; give up with a reason when that does not help."""
        for child in self.children.values():
            if child.is_running() or child.process is None:
                continue
            code = child.process.returncode
            if child.restarts_lately() >= MOST_RESTARTS:
                raise EmbeddedError(
                    f"{child.name} keeps ending (code {code}). The end of {child.log}:\n{child.last_words()}"
                )
            self._say(f"{child.name} ended (code {code}) and is started again; its log is {child.log}")
            self._include(child.start(self._folder))

    def stop(self, *, patience: float = 2.5) -> None:
        """Ask all at once, ask again half-way, and after `patience` seconds do not ask any more.

        Nobody loses anything by that: the truth of all that was going on is in the database. (A pool of
        job processes takes several seconds to end in good order, even when it has nothing to do.)
        """
        for _ in range(2):
            for child in self.children.values():
                child.signal(signal.SIGTERM)
            if self._all_end_within(patience / 2):
                break
        for child in self.children.values():
            _kill_session(child)
        self.children.clear()

    def _all_end_within(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while any(child.is_running() for child in self.children.values()):
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True


def _kill_session(child: Child) -> None:
    """End what a child has left behind in its session, too."""
    if child.process is None:
        return
    with suppress(ProcessLookupError):
        os.killpg(child.process.pid, signal.SIGKILL)
    child.process.wait()
