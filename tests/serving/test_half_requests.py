"""Half requests and half-read answers keep nobody else waiting: against the servers as they are started."""

import json
import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from tests.serving.conftest import REQUEST_SECONDS, THREADS
from tests.support.api import token_of, worker_token
from tests.support.running import House

CROWD = 3 * THREADS
SOON = 5.0
LOOKED_AT_WITHIN = 6.0
"""After its time is over a request is ended at the next look."""
STATIC = "/static/unfold/css/styles.css"

HEAD = "{asked} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
BODY = (
    HEAD + "Content-Type: application/json\r\nIdempotency-Key: k\r\nContent-Length: 1000\r\n\r\n" + '{{"a": '
)
CHUNKS = HEAD + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n" + '{{"a":'


@pytest.fixture
def house(tenant_id: str) -> House:
    return House(tenant_id)


@contextmanager
def crowd(base: str, begun: str) -> Iterator[list[socket.socket]]:
    """Three times as many callers as the process has threads, each with so much of a request."""
    host, port = base.removeprefix("http://").split(":")
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_connection((host, int(port)), 30)) for _ in range(CROWD)]
        for each in sockets:
            each.sendall(begun.encode())
        time.sleep(0.5)
        yield sockets


def assert_answered(base: str, house: House, kind: str) -> None:
    """A good request, that asks the database, is answered soon."""
    began = time.monotonic()
    for _ in range(THREADS):
        if kind == "web":
            token = token_of(house.world.requester)
            answer = httpx.get(
                f"{base}/factory/runs", headers={"Authorization": f"Bearer {token}"}, timeout=30
            )
        else:
            answer = httpx.get(f"{base}/readyz", timeout=30)
        assert answer.status_code == 200
    assert time.monotonic() - began < SOON


def assert_ended(sockets: list[socket.socket], within: float) -> None:
    """The server ends each connection by itself."""
    ends = time.monotonic() + within
    open_ = set(sockets)
    while open_ and time.monotonic() < ends:
        for each in select.select(list(open_), [], [], 0.5)[0]:
            try:
                if each.recv(65536) == b"":
                    open_.discard(each)
            except ConnectionError:
                open_.discard(each)
    assert not open_


@pytest.mark.parametrize("begun", ["half a head", "half a body", "half a chunk"])
@pytest.mark.parametrize("kind", ["web", "stream"])
def test_who_sends_half_a_request_keeps_nobody_waiting_and_is_let_go(
    request: pytest.FixtureRequest, house: House, kind: str, begun: str
) -> None:
    base = request.getfixturevalue(f"{kind}_base")
    if kind == "web":
        asked, token = "POST /factory/runs", token_of(house.world.requester)
    else:
        asked, token = "PUT /factory/workers/half", worker_token("worker:half", pool=house.pool)
    half = {"half a head": HEAD, "half a body": BODY, "half a chunk": CHUNKS}[begun]
    with crowd(base, half.format(asked=asked, token=token)) as sockets:
        assert_answered(base, house, kind)
        assert_ended(sockets, REQUEST_SECONDS + LOOKED_AT_WITHIN)


@pytest.mark.parametrize("kind", ["web", "stream"])
def test_who_sends_a_byte_now_and_then_is_let_go_all_the_same(
    request: pytest.FixtureRequest, house: House, kind: str
) -> None:
    base = request.getfixturevalue(f"{kind}_base")
    with crowd(base, "GET /healthz HTTP/1.1\r\nX-Slow: ") as sockets:
        ends = time.monotonic() + REQUEST_SECONDS + LOOKED_AT_WITHIN
        gone = 0
        while gone < CROWD and time.monotonic() < ends:
            time.sleep(0.5)
            gone = 0
            for each in sockets:
                try:
                    each.sendall(b"x")
                except OSError:
                    gone += 1
        assert gone == CROWD
        assert_answered(base, house, kind)


def test_who_does_not_read_the_answer_keeps_nobody_waiting(web_base: str, house: House) -> None:
    """Answers larger than what the kernel takes in, asked for three times as often as there are threads."""
    large = httpx.get(f"{web_base}{STATIC}")
    assert large.status_code == 200
    wanted = f"GET {STATIC} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 40
    host, port = web_base.removeprefix("http://").split(":")
    with ExitStack() as held:
        for _ in range(CROWD):
            each = held.enter_context(socket.socket())
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            each.connect((host, int(port)))
            each.sendall(wanted.encode())
        time.sleep(1)
        assert_answered(web_base, house, "web")


def test_a_watcher_who_reads_nothing_keeps_nobody_waiting(stream_base: str, house: House) -> None:
    token = token_of(house.world.requester)
    watch = f"GET /factory/watch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
    with crowd(stream_base, watch):
        house.run("single")
        assert_answered(stream_base, house, "stream")


def test_what_is_sent_slowly_but_whole_is_answered(web_base: str, house: House) -> None:
    token, body = token_of(house.world.requester), json.dumps(house.payload())

    def slowly() -> Iterator[bytes]:
        for place in range(0, len(body), len(body) // 4):
            time.sleep(0.4)
            yield body[place : place + len(body) // 4].encode()

    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "slow"}
    headers["Content-Type"] = "application/json"
    answer = httpx.post(f"{web_base}/factory/runs", content=slowly(), timeout=30, headers=headers)
    assert answer.status_code == 202, answer.text
