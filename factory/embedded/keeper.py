"""Cleans up when the last process that uses the embedded servers of a folder is gone.

A keeper is a tiny process at the other end of a pipe. Its user may end in any way, `kill -9` included:
the pipe closes, the keeper sees to it that the processes it was told of end too, and then stops the
servers unless another keeper still holds the same folder.
"""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

import psutil

from factory.embedded import postgres, valkey
from factory.embedded.system import EmbeddedError, make_folder

STOP_SECONDS = 25.0
GRACE_SECONDS = 4.0
"""How long the processes of a dead user have to end by themselves."""


class Keeper:
    """The near end: hold it for as long as the servers are needed, and then `release()` it."""

    def __init__(self, home: Path) -> None:
        make_folder(home)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "factory.embedded.keeper", str(home.resolve())],
            cwd=Path(__file__).resolve().parents[2],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != "held":
            raise EmbeddedError(f"{home} could not be taken into use.")

    def include(self, pid: int) -> None:
        """From now on the session that `pid` leads must not outlive us."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{pid} {psutil.Process(pid).create_time()!r}\n")
        self._process.stdin.flush()

    def release(self) -> None:
        """Let go, and wait until the servers have stopped (or somebody else goes on using them)."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()


def keep(home: Path, user: TextIO) -> None:
    """The far end: wait until `user` closes, then stop what nobody uses any more."""
    with (home / ".users").open("a") as users:
        # Waits while a keeper before us is stopping the servers: it holds the lock alone.
        fcntl.flock(users, fcntl.LOCK_SH)
        print("held", flush=True)  # noqa: T201  the near end waits for this word
        end_sessions(user.readlines())
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        valkey.stop(home)
        postgres.stop(home)


def end_sessions(lines: Iterable[str]) -> None:
    """End what is left of the sessions whose leaders and their times of birth stand in `lines`."""
    leaders = [(int(pid), float(born)) for pid, _, born in (line.partition(" ") for line in lines)]
    for pid, born in leaders:
        if _is_same(pid, born):
            os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + GRACE_SECONDS
    while any(_is_same(*leader) for leader in leaders) and time.monotonic() < end:
        time.sleep(0.05)
    for pid, _born in leaders:
        for process in _members(pid):
            process.kill()


def _is_same(pid: int, born: float) -> bool:
    """A number may be another process's by now; its time of birth tells them apart."""
    try:
        process = psutil.Process(pid)
        return bool(process.create_time() == born and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _members(session: int) -> list[psutil.Process]:
    """Return the processes that still run in a session: its number stays taken while anybody is in it."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (ProcessLookupError, PermissionError, psutil.Error):
            continue
    return found


def main() -> None:
    for word in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(word, signal.SIG_IGN)
    keep(Path(sys.argv[1]), sys.stdin)


if __name__ == "__main__":
    main()
