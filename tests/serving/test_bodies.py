"""Bodies are read however they are sent, with the same limits on every surface."""

import gzip
import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from factory.api.strict_json import MAX_BODY, MAX_WORKER_BODY
from tests.support.api import token_of, worker_token
from tests.support.running import House

MEGABYTE = 1024 * 1024


@pytest.fixture
def house(tenant_id: str) -> House:
    return House(tenant_id)


def pieces(body: bytes) -> Iterator[bytes]:
    """An iterator of unknown length: httpx sends it in chunks."""
    for place in range(0, len(body), 4096):
        yield body[place : place + 4096]


def send(base: str, house: House, kind: str, body: Any, **headers: str) -> httpx.Response:
    """Submit a run, or ask for work."""
    if kind == "web":
        method, path, token = "POST", "/factory/runs", token_of(house.world.requester)
    else:
        method, path, token = "PUT", "/factory/workers/w1", worker_token("worker:w1", pool=house.pool)
    sent = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Idempotency-Key": str(uuid4()),
    } | headers
    return httpx.request(method, f"{base}{path}", content=body, headers=sent, timeout=30)


def good(house: House, kind: str) -> bytes:
    worker = {"capabilities": ["*/*"], "maxConcurrency": 2, "version": "1.0"}
    return json.dumps(house.payload() if kind == "web" else worker).encode()


@pytest.fixture(params=["web", "stream"])
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def base(request: pytest.FixtureRequest, kind: str) -> str:
    found: str = request.getfixturevalue(f"{kind}_base")
    return found


def test_a_body_in_chunks_is_read_as_one_with_a_length(base: str, house: House, kind: str) -> None:
    whole = send(base, house, kind, good(house, kind))
    chunked = send(base, house, kind, pieces(good(house, kind)))
    assert (whole.status_code, chunked.status_code) in ((202, 202), (200, 200)), chunked.text


@pytest.mark.parametrize("megabytes", [0.1, 1.1, 6])
def test_a_body_in_chunks_that_is_too_large_is_refused_as_such(
    base: str, house: House, kind: str, megabytes: float
) -> None:
    """By so much more than the surface takes: one megabyte, and two of a worker."""
    most = MAX_BODY if kind == "web" else MAX_WORKER_BODY
    large = json.dumps({"input": "x" * (most + int(megabytes * MEGABYTE))}).encode()
    for body in (large, pieces(large)):
        answer = send(base, house, kind, body)
        assert (answer.status_code, answer.headers["Content-Type"]) == (413, "application/problem+json")
        told = answer.json()
        assert (told["type"], told["status"]) == ("/factory/problems/too-large", 413)
        assert told["traceId"] == answer.headers["X-Request-ID"]


def test_a_packed_body_is_refused_with_what_to_do(base: str, house: House, kind: str) -> None:
    packed = gzip.compress(good(house, kind))
    for body in (packed, pieces(packed)):
        answer = send(base, house, kind, body, **{"Content-Encoding": "gzip"})
        assert (answer.status_code, answer.headers["Content-Type"]) == (415, "application/problem+json")
        assert answer.json()["type"] == "/factory/problems/unsupported-media-type"
        assert "Content-Encoding" in answer.json()["detail"]


def test_a_form_of_the_console_may_come_in_chunks(web_base: str) -> None:
    """The sign-in form: an empty one would be refused for its missing token, this one for its password."""
    with httpx.Client(base_url=web_base, follow_redirects=True) as browser:
        browser.get("/admin/login/")
        token = browser.cookies["csrftoken"]
        form = f"csrfmiddlewaretoken={token}&username=nobody&password=wrong&next=/admin/".encode()
        answer = browser.post(
            "/admin/login/",
            content=pieces(form),
            headers={
                "Content-Type": "application/x-www-form-urlencoded",
                "Referer": f"{web_base}/admin/login/",
            },
        )
    assert answer.status_code == 200
    assert "password" in answer.text


def test_a_body_that_nobody_reads_is_not_kept(web_base: str, house: House) -> None:
    """A refused sender sees the answer, whoever they are."""
    large = b"x" * (12 * MEGABYTE)
    for body in (large, pieces(large)):
        answer = httpx.post(f"{web_base}/factory/runs", content=body, timeout=30)
        assert answer.status_code == 413
