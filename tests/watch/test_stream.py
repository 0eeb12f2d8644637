"""`GET /factory/watch` over HTTP."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import httpx
import pytest

from factory.identity.tokens import verifier
from factory.kernel.clock import now
from factory.kernel.hints import publish
from factory.kernel.models import RevokedToken
from runs.models import WorkerPool
from runs.watch import streaming
from tests.support.api import token_of, worker_token
from tests.support.world import World, second_world, world
from tests.watch.outbox import writing
from tests.watch.server import serving


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    with serving() as url:
        yield url


@pytest.fixture
def home(tenant_id) -> World:
    return world(tenant_id)


class Listener:
    """A client that reads the stream in a thread."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.events: list[dict[str, str]] = []
        self.comments = 0
        self.last = ""
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        fields: dict[str, str] = {}
        try:
            for line in self.response.iter_lines():
                name, _, value = line.partition(": ")
                if line.startswith(":"):
                    self.comments += 1
                elif line:
                    fields[name] = value
                else:
                    self.last = fields.get("id", self.last)
                    if "data" in fields:
                        self.events.append(fields)
                    fields = {}
        except httpx.HTTPError:
            pass
        self.ended.set()

    def wait(self, check: Any, seconds: float = 5) -> None:
        deadline = time.monotonic() + seconds
        while not check(self):
            assert time.monotonic() < deadline, (self.events, self.last)
            time.sleep(0.01)


@contextmanager
def listening(base: str, token: str, *, last: str = "", query: str = "") -> Iterator[Listener]:
    headers = {"Authorization": f"Bearer {token}"} | ({"Last-Event-ID": last} if last else {})
    with (
        httpx.Client(timeout=30) as client,
        client.stream("GET", f"{base}/factory/watch{query}", headers=headers) as response,
    ):
        assert response.status_code == 200, response.read()
        assert response.headers["Content-Type"].startswith("text/event-stream")
        assert response.headers["Cache-Control"] == "no-store"
        yield Listener(response)


@pytest.mark.requirement("WAPI-04", "WAPI-09")
def test_streams_changes_at_once_and_resumes_where_it_broke_off(base, home):
    run = uuid4()
    token = token_of(home.observer)
    with listening(base, token) as listener:
        listener.wait(lambda each: each.last)
        with writing(home.tenant, home.project) as writer:
            first = writer.tell(run, 1)
        publish("outbox")
        began = time.monotonic()
        listener.wait(lambda each: each.events)
        assert time.monotonic() - began < 0.9
        assert first in listener.events[0]["data"]
        assert listener.events[0]["event"] == "run-control.runs.v1.run-state-changed"
        last = listener.last
    with writing(home.tenant, home.project) as writer:
        missed = [writer.tell(run, 2), writer.tell(run, 3)]
    with listening(base, token, last=last) as listener:
        listener.wait(lambda each: len(each.events) == 2)
        assert [one in event["data"] for one, event in zip(missed, listener.events, strict=True)] == [
            True,
            True,
        ]
        with writing(home.tenant, home.project) as writer:
            live = writer.tell(run, 4)
        listener.wait(lambda each: len(each.events) == 3)  # and without a hint within a second
        assert live in listener.events[2]["data"]


def test_a_worker_watches_the_tenants_of_its_pool(base, home, tenant_id):
    other = second_world(tenant_id)
    WorkerPool.objects.create(name=f"pool-{tenant_id}", tenants=[home.tenant], created_at=now())
    with listening(base, worker_token(pool=f"pool-{tenant_id}")) as listener:
        listener.wait(lambda each: each.last)
        with writing(other.tenant, other.project) as writer:
            writer.tell(uuid4(), 1)
        with writing(home.tenant, home.project) as writer:
            mine = writer.tell(uuid4(), 1)
        listener.wait(lambda each: each.events)
        time.sleep(0.3)
        assert [mine in event["data"] for event in listener.events] == [True]


def test_says_that_it_is_still_there(base, home, monkeypatch):
    monkeypatch.setattr(streaming, "QUIET_SECONDS", 0.1)
    with listening(base, token_of(home.observer)) as listener:
        listener.wait(lambda each: each.comments >= 3)
        assert listener.last


@pytest.mark.requirement("WAPI-09")
def test_a_cut_after_a_comment_loses_nothing_and_shows_nothing_foreign(base, home, tenant_id, monkeypatch):
    """Comments carry no id: whoever comes back twice with the last one that they saw gets the rest once."""
    monkeypatch.setattr(streaming, "QUIET_SECONDS", 0.1)
    other, run, token = second_world(tenant_id), uuid4(), token_of(home.observer)

    def tell(*sequences: int) -> list[str]:
        with writing(other.tenant, other.project) as writer:
            writer.tell(uuid4(), sequences[0])
        with writing(home.tenant, home.project) as writer:
            return [writer.tell(run, sequence) for sequence in sequences]

    with listening(base, token) as listener:
        listener.wait(lambda each: each.last)
        seen = tell(1)
        listener.wait(lambda each: each.events)
        last, quiet = listener.last, listener.comments
        listener.wait(lambda each: each.comments >= quiet + 3)
        assert listener.last == last, "a comment moves nothing"
    seen += tell(2, 3)
    told: list[list[str]] = []
    for _ in range(2):
        with listening(base, token, last=last) as listener:
            listener.wait(lambda each: len(each.events) >= 2 and each.comments >= 2)
            told.append([event["data"] for event in listener.events])
    for events in told:
        assert [one in data for one, data in zip(seen[1:], events, strict=True)] == [True, True]
        assert not [data for data in events if other.tenant in data or str(other.project) in data]


def test_ends_when_its_token_is_revoked(base, home, monkeypatch):
    monkeypatch.setattr(streaming, "QUIET_SECONDS", 0.1)
    monkeypatch.setattr(streaming, "RECHECK_SECONDS", 0.2)
    token = token_of(home.observer)
    with listening(base, token) as listener:
        listener.wait(lambda each: each.comments >= 3)
        assert not listener.ended.is_set()
        told = verifier().verify(token)
        RevokedToken.objects.create(
            jti=told.jti, subject=told.subject, reason="lost", revoked_by="test", revoked_at=now()
        )
        assert listener.ended.wait(5)


@pytest.mark.parametrize(
    ("who", "query", "last", "status"),
    [
        (None, "", "", 401),
        ("no-scope", "", "", 403),
        ("pool-unknown", "", "", 403),
        ("observer", "?runId=x", "", 400),
        ("observer", "?tenantId=t", "", 400),
        ("observer", "", "made-up", 400),
        ("observer", "?runId=0199f000-0000-7000-8000-000000000000", "", 404),
    ],
)
def test_refuses_as_the_rest_surface_does(base, home, who, query, last, status):
    tokens = {
        "observer": token_of(home.observer),
        "no-scope": token_of(home.observer, scopes=["factory.usage.read"]),
        "pool-unknown": worker_token(pool="nobody"),
    }
    headers = {"Authorization": f"Bearer {tokens[who]}"} if who else {}
    if last:
        headers["Last-Event-ID"] = last
    response = httpx.get(f"{base}/factory/watch{query}", headers=headers)
    assert (response.status_code, response.headers["Content-Type"]) == (status, "application/problem+json")
    told = response.json()
    assert told["status"] == status
    assert told["traceId"] == response.headers["X-Request-ID"]
    assert told["instance"] == "/factory/watch"


def test_answers_paths_and_methods_that_are_not_there_with_problems(base):
    assert httpx.get(f"{base}/nowhere").json()["type"] == "/factory/problems/not-found"
    assert httpx.post(f"{base}/factory/watch").json()["type"] == "/factory/problems/method-not-allowed"
    assert httpx.get(f"{base}/healthz").json() == {"status": "ok"}
    assert httpx.get(f"{base}/readyz").status_code == 200
    assert httpx.get(f"{base}/metrics").content.endswith(b"# EOF\n")
