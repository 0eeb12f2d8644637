"""The bounds of one connection of the web process, against its server on raw sockets."""

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from waitress import wasyncore

from config.serving import ListenAddress, listening, web

REQUEST_SECONDS = 1
ENDED_WITHIN = REQUEST_SECONDS + 2 * web.LOOK_SECONDS + 2
FIRST = b"GET /first HTTP/1.1\r\nHost: x\r\n\r\n"
LARGE = 64 * 2**20


class QuickChannel(web.HttpChannel):
    """A channel whose answers have a second, and one more for each 16 MiB."""

    answer_seconds = 1.0
    least_rate = 16 * 2**20


class QuickServer(web.Server):
    channel_class = QuickChannel


@contextmanager
def listening_server(application: Callable[..., Iterable[bytes]]) -> Iterator[tuple[str, int]]:
    """The web process's server around an application, in a thread; yields its address."""
    sock = listening(ListenAddress("127.0.0.1", 0, False))
    server = QuickServer(
        application, {}, _sock=sock, adj=web.adjustments(settings), bind_socket=False,
        sockinfo=(sock.family, sock.type, sock.proto, sock.getsockname()), request_seconds=REQUEST_SECONDS,
    )  # fmt: skip
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            wasyncore.loop(timeout=0.2, use_poll=True, map=server._map, count=1)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield sock.getsockname()
    finally:
        stop.set()
        thread.join(10)
        server.task_dispatcher.shutdown()
        wasyncore.close_all(server._map)


def answering(seconds: float = 0, size: int = 5) -> Callable[..., Iterable[bytes]]:
    """An application that takes its time."""

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        time.sleep(seconds)
        start_response("200 OK", [("Content-Length", str(size))])
        return [b"a" * size]

    return application


def answer_on(sock: socket.socket) -> bytes:
    """Return the next short answer."""
    found = b""
    while not found.endswith(b"aaaaa") and (piece := sock.recv(2**16)):
        found += piece
    return found


def until_it_ends(sock: socket.socket) -> bytes:
    """Return what comes until the server ends the connection."""
    found = b""
    try:
        while piece := sock.recv(2**20):
            found += piece
    except ConnectionResetError:
        pass
    return found


def test_half_a_request_behind_a_slow_one_does_not_cost_its_answer() -> None:
    with (
        listening_server(answering(seconds=REQUEST_SECONDS + 2 * web.LOOK_SECONDS + 1)) as where,
        socket.create_connection(where, 30) as sock,
    ):
        sock.sendall(FIRST + b"GET /half HTTP/1.1\r\n")
        assert answer_on(sock).endswith(b"\r\n\r\naaaaa")
        began = time.monotonic()
        assert until_it_ends(sock) == b""
        assert time.monotonic() - began < ENDED_WITHIN


def test_a_connection_that_sends_nothing_is_let_go_in_the_time_of_a_request() -> None:
    with listening_server(answering()) as where, socket.create_connection(where, 30) as sock:
        began = time.monotonic()
        assert until_it_ends(sock) == b""
        assert time.monotonic() - began < ENDED_WITHIN


def test_a_connection_on_which_was_answered_is_kept() -> None:
    with listening_server(answering()) as where, socket.create_connection(where, 30) as sock:
        for _ in range(2):
            sock.sendall(FIRST)
            assert answer_on(sock).endswith(b"\r\n\r\naaaaa")
            time.sleep(ENDED_WITHIN)


def test_who_reads_a_byte_now_and_then_is_let_go() -> None:
    with listening_server(answering(size=LARGE)) as where, socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(where)
        sock.sendall(FIRST)
        for _ in range(4 * ENDED_WITHIN):
            sock.recv(2048)
            time.sleep(0.25)
        sock.settimeout(20)
        assert len(until_it_ends(sock)) < LARGE // 2


def test_who_reads_a_large_answer_in_time_has_all_of_it() -> None:
    with listening_server(answering(size=LARGE)) as where, socket.create_connection(where, 30) as sock:
        sock.sendall(FIRST)
        head, _, body = sock.recv(2**16).partition(b"\r\n\r\n")
        length = len(body)
        while length < LARGE:
            length += len(sock.recv(2**16))
            time.sleep(0.002)
        assert (head.split()[1], length) == (b"200", LARGE)
