"""A broker that is away or frozen; a process that dies after its commit."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID, uuid4

import pytest

from factory.kernel.tenancy import reading
from factory.messaging.relay.delivery import deliver_due
from factory.messaging.relay.destinations import Handlers
from runs.models import Run, Step
from tests.support.evidence import violations
from tests.support.running import House
from tests.support.web import Caller, web


@pytest.fixture
def house(tenant_id: str) -> Iterator[House]:
    made = House(tenant_id)
    yield made
    assert violations(tenant_id) == []


@contextmanager
def broken_broker(kind: str) -> Iterator[str]:
    """Nobody listens; or somebody takes connections and says nothing, as a stopped process does."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    port = listener.getsockname()[1]
    if kind == "down":
        listener.close()
    try:
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        listener.close()


def submissions(base: str, house: House, number: int) -> tuple[list[UUID], float]:
    """So many submissions one after the other, and the longest time that all but one of them took."""
    caller = Caller(base, house.world.requester)
    caller.post("/runs", house.payload(), str(uuid4()))
    seconds, runs = [], []
    for _ in range(number):
        began = time.perf_counter()
        answer = caller.post("/runs", house.payload(), str(uuid4()))
        seconds.append(time.perf_counter() - began)
        assert answer.status_code == 202, answer.text
        runs.append(UUID(answer.json()["runId"]))
    return runs, sorted(seconds)[-2]


@pytest.mark.requirement("FLR-09", "USG-16", "DEP-06")
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["down", "frozen"])
def test_submissions_stay_fast_without_a_broker_and_runs_go_on(house: House, kind: str) -> None:
    with web() as base:
        _, usual = submissions(base, house, 12)
    with broken_broker(kind) as url, web(REDIS_URL=url) as base:
        runs, without = submissions(base, house, 12)
    # One call a second pays the quarter of a second that a silent broker is waited for. A busy machine
    # (both processes share it with the tests) is measured by what it needs when the broker is there.
    assert without < max(0.5, 2 * usual + 0.3), (usual, without)
    deliver_all(house, runs)


def deliver_all(house: House, runs: list[UUID]) -> None:
    """What a relay that starts later does."""
    ends = time.monotonic() + 30
    while time.monotonic() < ends:
        deliver_due(Handlers())
        with reading(house.system):
            if Step.objects.filter(run_id__in=runs).values("run_id").distinct().count() == len(runs):
                return
    pytest.fail("Not every run was started.")


DIES = """
import os, signal, sys
import django
django.setup()
from uuid import UUID
from factory.kernel import hints
from tests.support.world import context_of
from runs.rest.submissions import submit
import json
hints.publish = lambda channel: os.kill(os.getpid(), signal.SIGKILL)
subject, tenant, project, payload, key = sys.argv[1:]
submit(context_of(subject, tenant, UUID(project)), payload=json.loads(payload), key=key)
print("still alive")
"""


@pytest.mark.requirement("EVT-02", "JRN-08")
def test_a_crash_between_commit_and_relay_loses_nothing(house: House) -> None:
    """The process dies in the very hook that would have told the relay."""
    import json

    actor, key = house.world.requester.actor, str(uuid4())
    arguments = [actor.subject, house.tenant, str(house.world.project), json.dumps(house.payload()), key]
    done = subprocess.run(
        [sys.executable, "-c", DIES, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr[-800:]
    with reading(house.system):
        run = Run.objects.get(idempotency_key=key)
    deliver_all(house, [run.id])
    worker = house.hand()
    work = worker.take()
    worker.report(work, output=1)
    assert house.state(run.id) == "Completed"
