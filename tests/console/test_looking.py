"""A list that is narrowed by what no index answers: it looks so far, says so, and goes on when asked."""

import re
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError, connection
from django.db.models import QuerySet
from django.http import HttpRequest

from factory.admin.base import HouseAdmin
from factory.admin.lists import files, looking, pages
from factory.admin.site import site
from factory.models import AuditEntry
from factory.tenancy import reading
from tests.console.test_lists import AUDIT, keys, sheet, text
from tests.console.test_pages import signed_in
from tests.support.client import Client
from tests.support.running import House

SOUGHT = f"{AUDIT}?action=SubmitRun"
SLOWLY = ["pg_sleep(0.02) IS NOT NULL"]


@pytest.fixture(scope="module")
def house() -> House:
    """Entries of submissions, and between them others, so that a stretch may hold none of them."""
    made = House(f"t-{uuid4().hex[:16]}")
    for _ in range(4):
        made.accept("single")
    made.run("single")
    made.accept("single")
    return made


@pytest.fixture(scope="module")
def auditor(house: House) -> Client:
    return signed_in(house.world.auditor)


@pytest.fixture
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter that takes twenty milliseconds for each row, and lists that look through three at once."""
    every = HouseAdmin.get_search_results

    def slow(page: Any, request: HttpRequest, rows: QuerySet[Any], term: str) -> tuple[QuerySet[Any], bool]:
        found, twice = every(page, request, rows, term)
        return (found.extra(where=SLOWLY) if request.GET.get("action") else found), twice

    monkeypatch.setattr(HouseAdmin, "get_search_results", slow)
    monkeypatch.setattr(looking, "AT_FIRST_MS", 10)
    monkeypatch.setattr(looking, "AT_ONCE", 3)
    monkeypatch.setattr(pages, "PATIENCE", 0.0)


def submissions(house: House, *, oldest: bool = False) -> list[str]:
    with reading(house.system):
        rows = AuditEntry.objects.filter(project_id=house.world.project, action="SubmitRun")
        order = ("occurred_at", "id") if oldest else ("-occurred_at", "-id")
        return [str(key) for key in rows.order_by(*order).values_list("pk", flat=True)]


def further(answer: Any) -> str:
    found = re.search(r'<a class="fc-button[^"]*" href="([^"]+)">Look further<', text(answer))
    return unescape(found[1]) if found else ""


@pytest.mark.usefixtures("no_index")
@pytest.mark.parametrize("order", ["", "&order=oldest"])
def test_it_looks_so_far_says_so_and_finds_each_row_once_when_asked_to_go_on(
    house: House, auditor: Client, order: str
) -> None:
    at, found, empty = f"{SOUGHT}{order}", list[str](), 0
    while at:
        answer = auditor.get(at)
        some = keys(answer)
        found += some
        at = further(answer)
        said = "3 rows of the list were looked through here, to <time" in text(answer)
        assert said == bool(at)
        if at and not some:
            empty += 1
            assert "Nothing matches so far" in text(answer)
            assert "Nothing stands here any more" not in text(answer)
    assert found == submissions(house, oldest=bool(order))
    assert len(found) == 6
    assert empty, "a stretch without any is told as one"


@pytest.mark.usefixtures("no_index")
def test_a_page_that_is_full_leads_on_as_any_other_and_back(
    house: House, auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "AT_ONCE", 1000)
    monkeypatch.setattr(site._registry[AuditEntry], "list_per_page", 4)
    first = auditor.get(SOUGHT)
    assert keys(first) == submissions(house)[:4]
    assert not further(first)
    second = auditor.get(re.sub("&amp;", "&", re.findall(r'rel="next" href="([^"]+)"', text(first))[0]))
    assert keys(second) == submissions(house)[4:]
    assert not further(second), "Nothing is behind the last stretch"
    back = auditor.get(re.sub("&amp;", "&", re.findall(r'rel="prev" href="([^"]+)"', text(second))[0]))
    assert keys(back) == keys(first)


@pytest.mark.usefixtures("no_index")
def test_who_asks_to_look_further_waits_a_while_for_a_page(
    house: House, auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = further(auditor.get(SOUGHT))
    monkeypatch.setattr(pages, "PATIENCE", 60.0)
    answer = auditor.get(at)
    assert not further(answer)
    assert keys(answer) == [key for key in submissions(house) if key not in keys(auditor.get(SOUGHT))]


@pytest.mark.usefixtures("no_index")
def test_a_file_of_it_is_whole(house: House, auditor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ROWS_AT_FIRST", 1)
    monkeypatch.setattr(files, "ROWS_AT_ONCE", 2)
    lines = sheet(auditor.get(f"{SOUGHT}&format=csv"))
    assert len(lines) == 1 + len(submissions(house))


def test_what_the_database_answers_in_time_is_not_looked_through(auditor: Client) -> None:
    answer = auditor.get(SOUGHT)
    assert keys(answer)
    assert not further(answer)
    assert "looked through" not in text(answer)


def test_a_look_leaves_the_settings_of_the_transaction_as_they_were(house: House) -> None:
    def told() -> list[Any]:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT current_setting('statement_timeout'), current_setting('enable_sort'),"
                " current_setting('factory.tenant')"
            )
            return list(cursor.fetchone())

    with reading(house.system):
        before = told()
        rows = AuditEntry.objects.order_by("-occurred_at", "-id")
        look = looking.Look(
            rows, rows.extra(where=["pg_sleep(1) IS NOT NULL"]), ("occurred_at", "id"), False, True
        )
        assert look._at_first(None, 1) is None
        assert told() == before
        with looking._for_now("enable_sort = off"):
            assert told()[1] == "off"
        assert told() == before


def test_a_limit_that_passes_in_the_moment_of_the_answer_loses_neither_rows_nor_transaction(
    house: House,
) -> None:
    """PostgreSQL then cancels the statement that follows, which here is the one that ends the look."""
    cancelled = []

    def late(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql == looking.END and not cancelled:
            cancelled.append(sql)
            sql = "SELECT pg_sleep(9)"
        return execute(sql, params, many, context)

    with reading(house.system):
        rows = AuditEntry.objects.order_by("-occurred_at", "-id")
        look = looking.Look(rows, rows.all(), ("occurred_at", "id"), False, True)
        with connection.execute_wrapper(late):
            found = look.page(None, 3)
        assert cancelled
        assert (len(found.rows), look.through) == (3, 0)
        assert AuditEntry.objects.exists()


def look_at_a_falling_server(house: House) -> None:
    with reading(house.system):
        rows = AuditEntry.objects.order_by("-occurred_at", "-id")
        ends = rows.extra(where=["pg_terminate_backend(pg_backend_pid()) IS NOT NULL"])
        looking.Look(rows, ends, ("occurred_at", "id"), False, True).page(None, 1)


def test_a_fault_that_is_no_lack_of_time_is_none_of_a_look(house: House) -> None:
    with pytest.raises(OperationalError):
        look_at_a_falling_server(house)
