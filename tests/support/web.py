"""The product's web processes, as they run: two of them, with eight threads each."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil

from factory.kernel.context import Context
from tests.support.api import token_of

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60
NO_KEEPING = httpx.Limits(max_keepalive_connections=0)
"""A connection that is kept may be closed by the server just as the next call goes out on it."""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def web(**environment: str) -> Iterator[str]:
    """Two web processes on one port; yields their address."""
    with serving("web", processes=2, **environment) as base:
        yield base


@contextmanager
def serving(
    kind: str, *, processes: int = 1, said: Any = subprocess.DEVNULL, **environment: str
) -> Iterator[str]:
    """The product's own server, as `make up` and the how-to start it; yields its address."""
    port = free_port()
    command = [sys.executable, "-m", f"config.serving.{kind}", "--port", str(port), "--share-port"]
    known = {k: v for k, v in os.environ.items() if k != "DJANGO_ALLOW_ASYNC_UNSAFE"} | environment
    running = [
        subprocess.Popen(command, cwd=ROOT, env=known, stdout=subprocess.DEVNULL, stderr=said)
        for _ in range(processes)
    ]
    base, ends = f"http://127.0.0.1:{port}", time.monotonic() + PATIENCE
    try:
        while not (all(map(_listens, running)) and _answers(f"{base}/healthz")):
            assert all(process.poll() is None for process in running), f"a {kind} process ended"
            assert time.monotonic() < ends, f"the {kind} processes do not answer"
            time.sleep(0.2)
        yield base
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(15)


def _listens(process: "subprocess.Popen[bytes]") -> bool:
    with suppress(psutil.Error):
        return any(one.status == psutil.CONN_LISTEN for one in psutil.Process(process.pid).net_connections())
    return False


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2).status_code == 200
    except httpx.HTTPError:
        return False


class Caller:
    """Somebody who calls with a token, from as many threads as they like."""

    def __init__(self, base: str, ctx: Context) -> None:
        self.token = token_of(ctx)
        self.client = httpx.Client(base_url=f"{base}/factory", timeout=PATIENCE, limits=NO_KEEPING)

    def post(self, path: str, body: Any, key: str = "") -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}"} | ({"Idempotency-Key": key} if key else {})
        return self.client.post(path, json=body, headers=headers)

    def at_once(self, path: str, calls: Sequence[tuple[str, Any]]) -> list[httpx.Response]:
        """All (key, body) together; the answers in their order."""
        with ThreadPoolExecutor(len(calls)) as pool:
            return list(pool.map(lambda call: self.post(path, call[1], call[0]), calls))


def unlike(answers: Sequence[httpx.Response], *usual: int) -> list[str]:
    """What the others said: a bare number would explain nothing afterwards."""
    return [f"{a.status_code} {a.text[:300]}" for a in answers if a.status_code not in usual]
