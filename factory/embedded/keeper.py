"""Stops the embedded servers of a folder when the last process that uses them is gone.

A keeper is a tiny process at the other end of a pipe. Its user may end in any way, `kill -9` included: the
pipe closes, and the keeper stops the servers unless another keeper still holds the same folder.
"""

import fcntl
import signal
import subprocess
import sys
from pathlib import Path
from typing import TextIO

from factory.embedded import postgres, valkey
from factory.embedded.system import EmbeddedError, make_folder

STOP_SECONDS = 25.0


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
        user.read()
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        valkey.stop(home)
        postgres.stop(home)


def main() -> None:
    for word in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(word, signal.SIG_IGN)
    keep(Path(sys.argv[1]), sys.stdin)


if __name__ == "__main__":
    main()
