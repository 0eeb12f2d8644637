"""Connections live longer than the patience of clients and proxies."""

import http.client
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import uvicorn
from django.conf import settings

from config.serving import stream, web

LONGEST_USUAL_IDLE = 60
"""Seconds for which nginx and the usual load balancers keep an idle connection to what they lead to."""


def test_both_servers_keep_idle_connections_for_longer_than_proxies_do() -> None:
    assert settings.FACTORY_KEEP_ALIVE_SECONDS > LONGEST_USUAL_IDLE
    assert web.adjustments(settings).channel_timeout == settings.FACTORY_KEEP_ALIVE_SECONDS
    bounded = stream.configured(None, settings)
    assert bounded.timeout_keep_alive == settings.FACTORY_KEEP_ALIVE_SECONDS


def test_a_connection_that_stood_still_for_three_seconds_is_used_again(base: str) -> None:
    connection = http.client.HTTPConnection(base.removeprefix("http://"), timeout=30)
    connection.request("GET", "/healthz")
    assert b"ok" in connection.getresponse().read()
    first = connection.sock
    time.sleep(3)
    connection.request("GET", "/healthz")
    answer = connection.getresponse()
    assert (answer.status, connection.sock is first) == (200, True)
    connection.close()


def test_idle_connections_keep_nobody_waiting(base: str) -> None:
    """Ten times as many as there are threads."""
    kept = [http.client.HTTPConnection(base.removeprefix("http://"), timeout=30) for _ in range(40)]
    for each in kept:
        each.request("GET", "/healthz")
        each.getresponse().read()
    began = time.monotonic()
    assert httpx.get(f"{base}/healthz", timeout=30).status_code == 200
    assert time.monotonic() - began < 3
    for each in kept:
        each.close()


SMALL = 32_000
"""Bytes of an answer that asyncio would keep for its reader without a word."""


async def small_answer(scope: Any, receive: Any, send: Any) -> None:
    length = str(SMALL).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": b"x" * SMALL})


def test_who_does_not_read_a_small_answer_of_the_stream_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "READ_SECONDS", 0.3)
    server = uvicorn.Server(stream.configured(small_answer, settings, lifespan="off"))
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # the system holds little for its reader
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect(listening.getsockname())
        reader.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: server.server_state.total_requests == 1)
        until(lambda: not server.server_state.connections)
    server.should_exit = True
    thread.join(10)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
