"""Lists whose rows move while somebody reads them: workers poll, leases are renewed, steps go on."""

import inspect
import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.options import ModelAdmin
from django.db.models import Model

from factory.console.lists import bounded_scan, files
from factory.console.site import site
from factory.kernel import clock
from factory.kernel.tenancy import reading
from runs.models import Lease, Step, Worker
from runs.states import Attention
from tests.console.test_lists import sheet, text, way
from tests.console.test_pages import IDS, PAGES, signed_in, url
from tests.support.client import Client
from tests.support.running import House

STAYS = {
    "id", "name", "number", "created_at", "found_at", "lent_at", "moved_at", "occurred_at", "period_start",
    "posted_at", "priced_at", "recorded_at", "refused_at", "requested_at", "revoked_at", "started_at",
}  # fmt: skip
"""Columns that are written when a row is made, and by nothing later."""
MOVE = {Lease: "expires_at", Step: "updated_at"}
"""Lists of few rows whose order is what an operator needs. They say that it moves."""
MANY = 5


@pytest.fixture(scope="module")
def house() -> House:
    """As many workers, leases and steps to be looked at."""
    made = House(f"t-{uuid4().hex[:16]}")
    for number in range(MANY):
        hand = made.hand(f"w{number}", slots=2)
        made.run("single")
        hand.report(hand.take(), "Uncertain", "uncertain", reason="The line was cut")
        made.run("single")
        hand.take()
    return made


@pytest.fixture
def operator(house: House) -> Client:
    return signed_in(house.world.operator)


@pytest.mark.parametrize(("model", "page"), PAGES, ids=IDS)
def test_pages_are_turned_by_what_stays_or_the_list_says_that_it_moves(
    model: type[Model], page: ModelAdmin
) -> None:
    key = [name.lstrip("-") for name in page.ordering or ()]
    moving = {MOVE[model]} if model in MOVE else set()
    assert {*key} - STAYS == moving
    assert bool(page.moving) == bool(moving)  # type: ignore[attr-defined]
    later = [part for part in inspect.getsource(model).split("\n    @") if 'source=""' not in part]
    assert not set(re.findall(r"self\.(\w+) =", "".join(later))) & {*key} - moving


def keys_of(house: House, model: Any) -> list[str]:
    """In the order of the rows' making: of a page that is the order in which they are turned, nearly."""
    with reading(house.system):
        if model is Worker:
            rows = model.objects.filter(pool_id=house.pool)
        elif model is Lease:
            rows = model.objects.filter(closed_at=None)
        else:
            rows = model.objects.exclude(attention="")
        return sorted(str(key) for key in rows.values_list("pk", flat=True))


MOVED = {
    Worker: "UPDATE runs_worker SET last_seen_at = clock_timestamp() WHERE pool_id = %s",
    Lease: "UPDATE runs_lease SET expires_at = expires_at + interval '1 h' * (1 + random()) "
    "WHERE tenant_id = %s",
    Step: "UPDATE runs_step SET updated_at = clock_timestamp() - interval '1 h' * random() "
    "WHERE tenant_id = %s AND attention <> ''",
}


def move(house: House, model: Any) -> None:
    house._owner(MOVED[model], [house.pool if model is Worker else house.tenant])


@pytest.mark.parametrize("slowly", [False, True], ids=["", "looked through"])
@pytest.mark.parametrize("order", ["", "&order=oldest"])
@pytest.mark.parametrize("model", [Worker, Lease, Step], ids=["workers", "leases", "steps"])
def test_a_file_has_each_row_once_however_they_move_while_it_is_read(
    house: House, operator: Client, monkeypatch: pytest.MonkeyPatch, model: Any, order: str, slowly: bool
) -> None:
    page = site._registry[model]
    monkeypatch.setattr(files, "ROWS_AT_FIRST", 2)
    monkeypatch.setattr(files, "ROWS_AT_ONCE", 2)
    monkeypatch.setattr(type(page), "file_columns", ("pk",))
    monkeypatch.setattr(type(page), "pk", lambda _, row: str(row.pk), raising=False)
    narrowed = "&q=w" if model is not Step else f"&attention={Attention.UNCERTAIN.value}"
    if slowly:
        monkeypatch.setattr(bounded_scan.BoundedScan, "_at_first", lambda *_: None)
        monkeypatch.setattr(bounded_scan, "AT_ONCE", 2)
    answer: Any = operator.get(f"{url(model, 'changelist')}?format=csv{order}{narrowed if slowly else ''}")
    lines = []
    for line in answer.streaming_content:
        lines += line.decode("utf-8-sig").split()
        move(house, model)
    assert sorted(lines[1:]) == keys_of(house, model)


def test_pages_of_workers_have_each_once_whoever_polls_meanwhile(
    house: House, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site._registry[Worker], "list_per_page", 2)
    at, found = url(Worker, "changelist"), list[str]()
    while at:
        answer = operator.get(at)
        found += re.findall(rf"{url(Worker, 'changelist')}([0-9a-f-]{{36}})/change/", text(answer))
        move(house, Worker)
        at = way(answer, "next")
    assert sorted(found) == keys_of(house, Worker)


def test_silent_workers_are_found_by_a_filter(house: House, operator: Client) -> None:
    move(house, Worker)
    first, second, *_ = keys_of(house, Worker)
    Worker.objects.filter(pk=first).update(last_seen_at=clock.now() - timedelta(minutes=9))
    Worker.objects.filter(pk=second).update(draining_at=clock.now())
    at = url(Worker, "changelist")
    found = {
        state: set(re.findall(rf"{at}([0-9a-f-]{{36}})/change/", text(operator.get(f"{at}?state={state}"))))
        for state in ("Active", "Draining", "Offline")
    }
    Worker.objects.filter(pk=second).update(draining_at=None)
    assert (found["Offline"], found["Draining"]) == ({first}, {second})
    assert found["Active"] == {*keys_of(house, Worker)} - {first, second}


@pytest.mark.parametrize("model", MOVE, ids=["leases", "steps"])
def test_a_list_that_moves_is_one_page_as_long_as_it_is_short_and_else_says_so(
    house: House, operator: Client, monkeypatch: pytest.MonkeyPatch, model: Any
) -> None:
    page: Any = site._registry[model]
    at = url(model, "changelist")
    assert page.list_per_page >= 100
    assert page.moving not in text(operator.get(at))
    monkeypatch.setattr(page, "list_per_page", 2)
    shown = operator.get(at)
    assert page.moving in text(shown)
    assert page.moving in text(operator.get(way(shown, "next")))


def test_the_file_of_leases_is_in_the_order_of_the_page(house: House, operator: Client) -> None:
    heads, *rows = sheet(operator.get(f"{url(Lease, 'changelist')}?format=csv"))
    ends = [dict(zip(heads, row, strict=True))[next(h for h in heads if "nd" in h)] for row in rows]
    assert ends == sorted(ends)
