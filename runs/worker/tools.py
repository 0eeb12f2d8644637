"""Calls of tools: measured, bounded, and ended when the attempt ends."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runs.worker.errors import ToolFailed

TICK = 0.2
# Looked up before any fork: the child may do no more than call it.
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
MOST_OUTPUT = 256 * 1024 * 1024
PASSED_ON = ("PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY", "NO_PROXY")


@dataclass(frozen=True)
class ProgramResult:
    """Hold what a program left."""

    stdout: bytes
    stderr: bytes
    exit_code: int


class ToolCall:
    """One call of a tool, open while the skill is inside `with context.tool(name)`."""

    def __init__(self, name: str, workdir: Path, check: Callable[[], None]) -> None:
        self.name = name
        self.details: dict[str, Any] = {}
        self.quantities: dict[str, Any] = {"calls": 1}
        self._workdir = workdir
        self._check = check
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Return how long it has taken so far."""
        return round(time.monotonic() - self._began, 3)

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float = 600.0,
        most_output: int = MOST_OUTPUT,
        watch: Callable[[], None] | None = None,
        check: bool = True,
    ) -> ProgramResult:
        """Run a program in a session of its own, with a bare environment and no credentials.

        It is killed when the attempt is interrupted, when it takes or writes too much, or when
        `watch` (called a few times a second) raises. Raises ToolFailed for these and for a non-zero exit.
        """
        temporary = tempfile.TemporaryFile
        with temporary() as given, temporary() as out, temporary() as err:
            given.write(stdin)
            given.seek(0)
            process = subprocess.Popen(
                list(argv), stdin=given, stdout=out, stderr=err, cwd=str(cwd or self._workdir),
                env=self._environment(env or {}), start_new_session=True, preexec_fn=_end_with_us,
            )  # fmt: skip
            try:
                self._attend(process, time.monotonic() + timeout, out.fileno(), most_output, watch)
            finally:
                _end(process)
            out.seek(0)
            err.seek(0)
            done = ProgramResult(out.read(), err.read(65536), process.returncode)
        self.details["exitCode"] = done.exit_code
        if check and done.exit_code != 0:
            complaint = done.stderr.decode("utf-8", "replace").strip()
            last = complaint.splitlines()[-1][:300] if complaint else "it said nothing"
            reason = f"exit {done.exit_code}: {last}"
            raise ToolFailed(self.name, reason, exit_code=done.exit_code, stderr=complaint)
        return done

    def _attend(
        self,
        process: "subprocess.Popen[bytes]",
        until: float,
        output: int,
        most_output: int,
        watch: Callable[[], None] | None,
    ) -> None:
        while True:
            try:
                process.wait(TICK)
                return
            except subprocess.TimeoutExpired:
                self._check()
                if time.monotonic() > until:
                    raise ToolFailed(self.name, "took too long") from None
                if os.fstat(output).st_size > most_output:
                    raise ToolFailed(self.name, "wrote too much") from None
                if watch:
                    watch()

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        own = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": str(self._workdir)}
        passed = {key: os.environ[key] for key in PASSED_ON if key in os.environ}
        return {**passed, **own, **more}


def _end_with_us() -> None:
    """In the child: the kernel ends it when the worker dies, however it dies. (Linux; elsewhere nothing.)"""
    if _LIBC is not None:
        _LIBC.prctl(1, signal.SIGKILL, 0, 0, 0)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Nothing that a tool started outlives the call."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
