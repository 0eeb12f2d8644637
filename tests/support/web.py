"""The product's web processes, as they run: gunicorn, two workers with eight threads each."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx

from factory.context import Context
from tests.support.api import token_of

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
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "config.wsgi:application", "--bind", f"127.0.0.1:{port}"]
    command += ["--worker-class", "gthread", "--workers", "2", "--threads", "8", "--log-level", "error"]
    command += ["--graceful-timeout", "1", "--no-control-socket"]
    known = os.environ | {"FACTORY_PROCESS": "web"} | environment
    process = subprocess.Popen(command, env=known, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    base = f"http://127.0.0.1:{port}"
    try:
        ends = time.monotonic() + PATIENCE
        while not _answers(f"{base}/healthz"):
            assert process.poll() is None, "the web processes ended"
            assert time.monotonic() < ends, "the web processes do not answer"
            time.sleep(0.2)
        yield base
    finally:
        process.terminate()
        process.wait(15)


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
