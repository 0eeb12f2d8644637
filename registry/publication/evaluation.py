"""Runs the evaluation suite that a release brings with it, on exactly the files of that release.

The suite is code from a commit that nobody has reviewed yet, and a process with limits is no sandbox:
who calls this decides to run it. The API never does; it only takes in what an evaluator reports.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from factory.kernel.hashing import digest, digest_bytes
from registry.commands.inputs import score_faults

SECONDS = 120
MAX_OUTPUT_BYTES = 1024 * 1024
_LIMITED = (
    "import os, resource, sys\n"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))\n"
    "resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]), int(sys.argv[1])))\n"
    "os.execv(sys.executable, [sys.executable, '-E', '-s', '-B', *sys.argv[2:]])\n"
)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Hold what a suite found: `problem` says why there are no scores, `said` is the end of its output."""

    suite: str
    suite_version: str
    scores: dict[str, Any]
    evidence_hash: str
    problem: str
    said: str


def run_suite(definition: Mapping[str, Any], files: Mapping[str, bytes]) -> Evaluated:
    """Run the suite in a folder of its own; a suite that fails has no scores, and that is the finding."""
    suite = definition["evaluation"]
    with tempfile.TemporaryDirectory(prefix="factory-evaluation-") as directory:
        folder = Path(directory)
        for name, content in files.items():
            target = folder / "release" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        code, out, err = _run(folder, suite["entry"])
    scores, problem = _scores(code, out)
    evidence = {
        "suite": suite["suite"],
        "version": suite["version"],
        "files": {name: digest_bytes(content) for name, content in files.items()},
        "exitCode": code,
        "output": digest_bytes(out),
        "errors": digest_bytes(err),
    }
    output = (err or out)[-2000:].decode("utf-8", "replace")
    return Evaluated(suite["suite"], suite["version"], scores, digest(evidence), problem, output)


def _run(folder: Path, entry: str) -> tuple[int, bytes, bytes]:
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
    with (folder / "out").open("w+b") as out, (folder / "err").open("w+b") as err:
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", _LIMITED, str(SECONDS), entry],
            cwd=folder / "release",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            code = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            code = -int(signal.SIGKILL)
        finally:
            _end(process)
        return code, _tail(out), _tail(err)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the suite with all that it started: they share one process group, made for them."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def _tail(written: BinaryIO) -> bytes:
    written.seek(max(0, written.seek(0, os.SEEK_END) - MAX_OUTPUT_BYTES))
    return written.read()


def _scores(code: int, out: bytes) -> tuple[dict[str, Any], str]:
    if code:
        return {}, f"The suite ended with code {code}."
    lines = out.decode("utf-8", "replace").strip().splitlines()
    try:
        record = json.loads(lines[-1]) if lines else None
    except ValueError:
        record = None
    scores = record.get("scores") if isinstance(record, dict) else None
    if not isinstance(scores, dict) or not scores or score_faults(scores):
        return {}, "The suite wrote no scores as its last line."
    return scores, ""
