"""One launcher for each folder of data."""

import fcntl
import json
import os
from pathlib import Path
from types import TracebackType

from factory.embedded.system import EmbeddedError, make_folder


class LauncherLock:
    """Held by the running launcher. The kernel frees it when its holder dies, so none is ever stale."""

    def __init__(self, home: Path) -> None:
        make_folder(home)
        self._path = home / "launcher.lock"

    def __enter__(self) -> "LauncherLock":
        self._file = self._path.open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EmbeddedError(self._who()) from None
        self.note("")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.truncate(0)
        self._file.close()

    def note(self, address: str) -> None:
        """Leave word for whoever starts a second one."""
        self._file.truncate(0)
        self._file.write(json.dumps({"pid": os.getpid(), "address": address}))
        self._file.flush()

    def _who(self) -> str:
        try:
            found = json.loads(self._path.read_text())
            place = f" at {found['address']}" if found["address"] else ""
            return (
                f"It is running already{place} (process {found['pid']}). Use that one, or end it with Ctrl-C "
                f"in its terminal (or `kill {found['pid']}`). FACTORY_HOME=… starts a second one with its "
                "own data."
            )
        except (OSError, ValueError, KeyError):
            return "It is being started in this folder already. Wait for that, or end it with Ctrl-C."
