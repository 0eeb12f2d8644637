"""The stream process's application on a real port, in a thread of the test."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from django.conf import settings

from config.serving.stream import configured
from runs.watch.app import make


@contextmanager
def serving(threads: int = 4) -> Iterator[str]:
    """Yields the base URL."""
    server = uvicorn.Server(configured(make(threads), settings, host="127.0.0.1", port=0))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 10
    while not server.started:
        assert thread.is_alive()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    port: Any = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()
