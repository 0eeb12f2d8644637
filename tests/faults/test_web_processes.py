"""Two real web processes: one key, one budget, and a database whose connections take their time."""

import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from django.conf import settings

from factory.kernel.tenancy import reading
from projects.commands import suspend_project
from runs.commands import start_run
from runs.models import Run
from tests.faults.rounds import rounds
from tests.support.api import token_of
from tests.support.evidence import violations
from tests.support.queries import deadlocks
from tests.support.races import row_held
from tests.support.running import House
from tests.support.threads import at_once
from tests.support.web import Caller, unlike, web
from usage.commands import change_budget_amount, create_budget
from usage.models import Budget, Reservation
from usage.pricing.periods import month_of

REPLAYED = "Idempotent-Replayed"
STARTED = ("Accepted", "Failed")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with web(FACTORY_METRICS_DIR=str(tmp_path_factory.mktemp("metrics"))) as url:
        yield url


@pytest.mark.requirement("OBS-01")
def test_whichever_web_process_is_asked_shows_what_all_have_counted(house: House, base: str) -> None:
    caller = Caller(base, house.world.requester)
    calls = [(str(uuid4()), house.payload()) for _ in range(16)]
    assert unlike(caller.at_once("/runs", calls), 202) == []
    accepted = re.compile(
        rf'^connectsoft_factory_runs_accepted_total{{.*tenant="{house.tenant}".*}} (.*)$', re.M
    )
    active = re.compile(rf'^connectsoft_factory_runs_active{{.*tenant="{house.tenant}".*}} (.*)$', re.M)
    for _ in range(12):  # a connection each: now one process answers, now the other
        told = httpx.get(f"{base}/metrics").text
        assert (accepted.findall(told), active.findall(told)) == (["16.0"], ["16.0"])


@pytest.mark.requirement("API-02", "API-05")
def test_one_key_on_two_web_processes_is_one_run(house: House, base: str) -> None:
    caller = Caller(base, house.world.requester)
    for _ in range(rounds(2)):
        key = str(uuid4())
        same = caller.at_once("/runs", [(key, house.payload())] * 50)
        assert unlike(same, 202) == []
        assert len({answer.json()["runId"] for answer in same}) == 1
        assert [REPLAYED in answer.headers for answer in same].count(False) == 1
        with reading(house.system):
            assert Run.objects.filter(idempotency_key=key).count() == 1


@pytest.mark.requirement("API-02", "API-03")
def test_one_key_with_other_bodies_at_once_is_one_run_and_conflicts(house: House, base: str) -> None:
    caller, key = Caller(base, house.world.requester), str(uuid4())
    told = caller.at_once("/runs", [(key, house.payload(input={"repository": f"r{n}"})) for n in range(50)])
    assert sorted(answer.status_code for answer in told) == [202] + [409] * 49, unlike(told, 202, 409)
    assert {a.json()["type"] for a in told if a.status_code == 409} == {
        "/factory/problems/idempotency-conflict"
    }
    with reading(house.system):
        assert Run.objects.filter(idempotency_key=key).count() == 1


@pytest.mark.requirement("API-02")
def test_a_key_is_answered_as_the_first_time_whatever_has_run_out_since(house: House, base: str) -> None:
    """The budget is used up, then the project is suspended: new work is denied, the answer stands."""
    caller, key, body = Caller(base, house.world.requester), str(uuid4()), house.payload()
    first = caller.post("/runs", body, key).json()
    start_run(house.system, run_id=UUID(first["runId"]))
    with reading(house.system):
        budget = Budget.objects.get(project_id=house.world.project)
    change_budget_amount(house.world.finance, budget_id=budget.id, amount=Decimal(5), version=budget.version)
    late = caller.post("/runs", body, str(uuid4()))
    assert start_run(house.system, run_id=UUID(late.json()["runId"])) == "Failed"
    assert_replayed(caller, key, body, first)
    suspend_project(house.world.workspace_admin, project_id=house.world.project, reason="stop")
    assert_replayed(caller, key, body, first)
    assert caller.post("/runs", body, str(uuid4())).status_code == 422


def assert_replayed(caller: Caller, key: str, body: Any, first: Any) -> None:
    again = caller.at_once("/runs", [(key, body)] * 10)
    assert unlike(again, 202) == []
    assert [answer.json() for answer in again] == [first] * 10
    assert {answer.headers[REPLAYED] for answer in again} == {"true"}


@pytest.mark.requirement("USG-17")
def test_fifty_submissions_reserve_exactly_what_both_budgets_hold(tenant_id: str, base: str) -> None:
    """Ten units in the project's and in the tenant's budget; fifty submissions of one unit over HTTP."""
    house = House(tenant_id, budget="10")
    create_budget(house.system, project_id=None, month=month_of(datetime.now(UTC)), amount=Decimal(10))
    caller, before = Caller(base, house.world.requester), deadlocks()
    body = house.payload(limits={"maxCostUsd": 1, "maxMinutes": 30})
    answers = caller.at_once("/runs", [(str(uuid4()), body) for _ in range(50)])
    assert unlike(answers, 202) == []
    runs = [UUID(answer.json()["runId"]) for answer in answers]
    told = at_once([partial(start_run, house.system, run_id=run_id) for run_id in runs])
    assert [answer for answer in told if answer not in STARTED] == []
    with reading(house.system):
        states = list(Reservation.objects.filter(run_id__in=runs).values_list("state", flat=True))
        figures = {(b.available, b.committed) for b in Budget.objects.all()}
    assert (states.count("Reserved"), states.count("Denied")) == (10, 40)
    assert figures == {(Decimal(0), Decimal(10))}
    assert sorted(house.state(run_id) for run_id in runs) == ["Accepted"] * 10 + ["Failed"] * 40
    assert deadlocks() == before
    assert violations(tenant_id) == []


@contextmanager
def slow_to_connect(seconds: float) -> Iterator[str]:
    """A way to the test's database on which every connection takes so long to be made."""
    where = settings.DATABASES["default"]
    door = socket.create_server(("127.0.0.1", 0), backlog=64)

    def forward(near: socket.socket) -> None:
        time.sleep(seconds)
        far = socket.create_connection((where["HOST"], int(where["PORT"])))
        other = threading.Thread(target=pump, args=(far, near), daemon=True)
        other.start()
        pump(near, far)

    def pump(a: socket.socket, b: socket.socket) -> None:
        with suppress(OSError):
            while piece := a.recv(65536):
                b.sendall(piece)
        with suppress(OSError):
            b.shutdown(socket.SHUT_WR)

    def listen() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=forward, args=(door.accept()[0],), daemon=True).start()

    threading.Thread(target=listen, daemon=True).start()
    try:
        yield f"127.0.0.1:{door.getsockname()[1]}"
    finally:
        door.close()


def test_a_burst_while_the_database_is_slow_is_answered(house: House) -> None:
    """A connection takes half a second, and whoever has one waits for a row.

    A pool that grows does so one connection after another: the last callers of a burst waited longer for
    one than they are let, and were refused, and the more so the busier the machine was.
    """
    where = settings.DATABASES["default"]
    with slow_to_connect(0.5) as place:
        url = f"postgresql://{where['USER']}:{where['PASSWORD']}@{place}/{where['NAME']}"
        with (
            web(DATABASE_URL=url) as base,
            row_held(house.tenant, "projects_project", house.world.project, 4),
        ):
            caller, key = Caller(base, house.world.requester), str(uuid4())
            answers = caller.at_once("/runs", [(key, house.payload())] * 32)
    assert unlike(answers, 202) == []


def test_a_body_that_is_too_large_is_refused_and_its_sender_sees_it(house: House, base: str) -> None:
    """Whoever refuses unread ends the connection under a sender who still writes, and no answer arrives.

    What the surface could read is refused by it, once it knows who sent it; more than that by the server.
    """
    host, mega = base.removeprefix("http://"), 1024 * 1024
    for token, size, status in (
        (token_of(house.world.requester), 8 * mega, 413),
        (token_of(house.world.requester), 2 * mega, 413),
        ("nobody", 2 * mega, 401),
        ("nobody", 8 * mega, 413),
    ):
        large = json.dumps({"input": {"text": "x" * size}})
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        for _ in range(3):
            sender = http.client.HTTPConnection(host, timeout=30)
            sender.request("POST", "/factory/runs", large, headers | {"Idempotency-Key": str(uuid4())})
            answer = sender.getresponse()
            assert (answer.status, answer.headers["Content-Type"]) == (status, "application/problem+json")
            sender.close()
