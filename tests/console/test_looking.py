"""A list that is narrowed by what no index answers: it looks so far, says so, and goes on when asked."""

import re
from html import unescape
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import OperationalError, connection
from django.db.models import QuerySet
from django.http import HttpRequest

from approvals.admin.tables.inbox_filters import WORDS
from approvals.commands import decide_approval
from approvals.models import ApprovalRequest
from factory.console.base import BaseAdmin
from factory.console.lists import bounded_scan, files, pages, searching
from factory.console.site import site
from factory.kernel.models import AuditEntry
from factory.kernel.tenancy import reading
from tests.console.test_lists import AUDIT, keys, sheet, text, way
from tests.console.test_pages import signed_in, url
from tests.support import threads
from tests.support.approvals import Asking, asking, staged
from tests.support.client import Client
from tests.support.running import House

SOUGHT = f"{AUDIT}?action=SubmitRun"
SLOWLY = ["pg_sleep(0.02) IS NOT NULL"]
KEY = ("occurred_at", "id")
MADE = 6
UNFINISHED = "Not looked through to the end: it takes too long. Filter the list otherwise."


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
    every = BaseAdmin.get_search_results

    def slow(page: Any, request: HttpRequest, rows: QuerySet[Any], term: str) -> tuple[QuerySet[Any], bool]:
        found, twice = every(page, request, rows, term)
        return (found.extra(where=SLOWLY) if request.GET.get("action") else found), twice

    monkeypatch.setattr(BaseAdmin, "get_search_results", slow)
    monkeypatch.setattr(bounded_scan, "AT_FIRST_MS", 10)
    monkeypatch.setattr(
        bounded_scan, "STRETCH_MS", 20_000
    )  # the filter is as slow for rows that are read by key
    monkeypatch.setattr(bounded_scan, "AT_ONCE", 3)
    monkeypatch.setattr(pages, "PATIENCE", 0.0)


@pytest.fixture
def never_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no question were ever answered at first."""
    monkeypatch.setattr(bounded_scan.BoundedScan, "_at_first", lambda *_: None)
    monkeypatch.setattr(pages, "PATIENCE", 0.0)


def submissions(house: House, *, oldest: bool = False) -> list[str]:
    with reading(house.system):
        rows = AuditEntry.objects.filter(project_id=house.world.project, action="SubmitRun")
        order = KEY if oldest else ("-occurred_at", "-id")
        return [str(key) for key in rows.order_by(*order).values_list("pk", flat=True)]


def all_of(house: House) -> int:
    with reading(house.system):
        return AuditEntry.objects.filter(project_id=house.world.project).count()


def further(answer: Any) -> str:
    found = re.search(r'<a class="fc-button[^"]*" href="([^"]+)">Look further<', text(answer))
    return unescape(found[1]) if found else ""


def walk(client: Client, at: str) -> list[Any]:
    """Every page on the way to the end: the next ones, and those that look further."""
    found = []
    while at:
        found.append(client.get(at))
        at = further(found[-1]) or way(found[-1], "next")
    return found


def look(rows: QuerySet[Any], narrowed: QuerySet[Any]) -> bounded_scan.BoundedScan:
    return bounded_scan.BoundedScan(rows, narrowed, KEY, ascending=False)


def newest_first() -> QuerySet[AuditEntry]:
    return AuditEntry.objects.order_by("-occurred_at", "-id")


@pytest.mark.usefixtures("no_index")
@pytest.mark.parametrize("order", ["", "&order=oldest"])
def test_it_looks_so_far_says_so_and_finds_each_row_once_when_asked_to_go_on(
    house: House, auditor: Client, order: str
) -> None:
    walked = walk(auditor, f"{SOUGHT}{order}")
    assert [key for page in walked for key in keys(page)] == submissions(house, oldest=bool(order))
    *before, last = walked
    for page in before:
        assert "3 rows of the list were looked through here, to <time" in text(page)
        assert "Nothing stands here any more" not in text(page)
        assert "that is all" not in text(page)
    assert [page for page in before if not keys(page)], "a stretch without any is told as one"
    assert "looked through" not in text(last)
    assert "Nothing here yet" not in text(last)


@pytest.mark.usefixtures("no_index", "never_at_first")
def test_the_end_of_a_look_says_whether_anything_was_found_on_the_way(auditor: Client) -> None:
    last = walk(auditor, SOUGHT)[-1]
    assert not keys(last), "the oldest entries are of no run"
    assert "Nothing more matches" in text(last)
    assert "the end of the list" in text(last)
    assert f'href="{AUDIT}?action=SubmitRun">Go to the first page' in text(last)
    never = walk(auditor, f"{AUDIT}?action=CancelRun")
    assert len(never) > 2
    assert "Nothing matches</h2>" in text(never[-1])


@pytest.mark.usefixtures("never_at_first")
@pytest.mark.parametrize("order", ["", "&order=oldest"])
def test_no_row_is_lost_or_doubled_however_long_a_stretch_and_a_page(
    house: House, auditor: Client, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    expected, everything = submissions(house, oldest=bool(order)), all_of(house)
    for at_once, shown in (
        (1, 2), (4, 1), (5, MADE - 1), (everything - 1, 4), (everything, MADE), (everything, 1),
        (everything + 1, MADE - 1),
    ):  # fmt: skip
        monkeypatch.setattr(bounded_scan, "AT_ONCE", at_once)
        monkeypatch.setattr(site._registry[AuditEntry], "list_per_page", shown)
        found = [key for page in walk(auditor, f"{SOUGHT}{order}") for key in keys(page)]
        assert found == expected, (at_once, shown)
        monkeypatch.setattr(files, "ROWS_AT_FIRST", shown)
        monkeypatch.setattr(files, "ROWS_AT_ONCE", shown)
        told = sheet(auditor.get(f"{SOUGHT}{order}&format=csv"))[1:]
        assert len({tuple(line) for line in told}) == len(told) == MADE, (at_once, shown)


@pytest.mark.usefixtures("no_index")
def test_a_page_that_is_full_leads_on_as_any_other_and_back(
    house: House, auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_scan, "AT_ONCE", 1000)
    monkeypatch.setattr(site._registry[AuditEntry], "list_per_page", 4)
    first = auditor.get(SOUGHT)
    assert keys(first) == submissions(house)[:4]
    assert not further(first)
    second = auditor.get(way(first, "next"))
    assert keys(second) == submissions(house)[4:]
    assert not further(second), "Nothing is behind the last stretch"
    assert keys(auditor.get(way(second, "prev"))) == keys(first)


@pytest.mark.usefixtures("never_at_first")
def test_previous_is_offered_where_something_was_found_before(
    house: House, auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_scan, "AT_ONCE", 1)
    found_before = False
    for page in walk(auditor, f"{SOUGHT}&order=oldest"):
        if keys(page):
            assert bool(way(page, "prev")) == found_before
        found_before |= bool(keys(page))
    assert found_before


@pytest.mark.usefixtures("never_at_first")
def test_the_way_back_is_looked_through_backwards(
    house: House, auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_scan, "AT_ONCE", 1)
    at, found = way([page for page in walk(auditor, SOUGHT) if keys(page)][-1], "prev"), list[str]()
    while at:
        page = auditor.get(at)
        found = keys(page) + found
        at = further(page) or way(page, "prev")
    assert found == submissions(house)[:-1]


@pytest.mark.usefixtures("no_index")
def test_who_asks_to_look_further_waits_a_while_for_a_page(
    house: House, auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = auditor.get(SOUGHT)
    monkeypatch.setattr(pages, "PATIENCE", 60.0)
    answer = auditor.get(further(first))
    assert not further(answer)
    assert keys(answer) == [key for key in submissions(house) if key not in keys(first)]


@pytest.mark.usefixtures("no_index")
def test_another_filter_or_view_begins_with_a_short_look_again(house: House, auditor: Client) -> None:
    page = text(auditor.get(further(auditor.get(SOUGHT))))
    for words in ("Oldest first", "Download as CSV"):
        [link] = re.findall(rf'href="([^"]+)"[^>]*>{words}<', page) or [""]
        assert "look=" not in link
        assert "after=" not in link
    reviewer = signed_in(house.world.reviewer)
    inbox = text(reviewer.get("/admin/approvals/approvalrequest/?whose=all&look=on"))
    views = re.findall(r'href="([^"]*\?[^"]*whose=[a-z-]+[^"]*)"', inbox)
    assert len(views) >= len(WORDS)
    assert not [link for link in views if "look=" in link]


def test_what_the_database_answers_in_time_is_not_looked_through(house: House, auditor: Client) -> None:
    answer = auditor.get(SOUGHT)
    assert keys(answer) == submissions(house)
    assert not further(answer)
    assert "looked through" not in text(answer)


def test_a_list_that_nothing_narrows_has_its_time(house: House) -> None:
    with reading(house.system):
        rows = newest_first().extra(where=SLOWLY)
        assert len(look(rows, rows.all()).page(None, 3).rows) == 3


def test_a_look_leaves_the_settings_of_the_transaction_as_they_were(house: House) -> None:
    def told() -> list[Any]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('statement_timeout'), current_setting('factory.tenant')")
            return list(cursor.fetchone())

    with reading(house.system):
        before = told()
        rows = newest_first()
        assert look(rows, rows.extra(where=["pg_sleep(1) IS NOT NULL"]))._at_first(None, 1) is None
        assert told() == before
        assert bounded_scan.in_time(20, told) == ["20ms", before[1]]
        assert told() == before


@pytest.mark.usefixtures("never_at_first")
def test_what_was_found_before_a_stretch_took_too_long_is_the_answer(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_scan, "AT_ONCE", 2)
    monkeypatch.setattr(bounded_scan, "STRETCH_MS", 60)
    with reading(house.system):
        rows = newest_first()
        third = rows[2]
        slow = rows.extra(
            where=["(factory_auditentry.id > %s OR pg_sleep(1) IS NOT NULL)"], params=[str(third.pk)]
        )
        one = look(rows, slow)
        found = one.page(None, 5, patience=60)
        assert [row.pk for row in found.rows] == [row.pk for row in rows[:2]]
        assert found.last == rows[1]
        with pytest.raises(OperationalError):
            one.page(one.place(rows[1]), 5, patience=60)
        assert AuditEntry.objects.exists(), "the transaction goes on"


def test_a_limit_that_passes_in_the_moment_of_the_answer_loses_neither_rows_nor_transaction(
    house: House,
) -> None:
    """PostgreSQL then cancels the statement that follows, which here is the one that ends the look."""
    cancelled = []

    def late(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql == bounded_scan.END and not cancelled:
            cancelled.append(sql)
            sql = "SELECT pg_sleep(9)"
        return execute(sql, params, many, context)

    with reading(house.system):
        rows = newest_first()
        one = look(rows, rows.filter(action="SubmitRun"))
        with connection.execute_wrapper(late):
            found = one.page(None, 3)
        assert cancelled
        assert (len(found.rows), one.through) == (3, 0)
        assert AuditEntry.objects.exists()


def look_at_a_falling_server(house: House, begun: list[Any]) -> None:
    with reading(house.system):
        rows = newest_first()
        one = look(rows, rows.extra(where=["pg_terminate_backend(pg_backend_pid()) IS NOT NULL"]))
        one._through = lambda *asked: begun.append(asked)  # type: ignore[method-assign, assignment, func-returns-value, return-value]
        one.page(None, 1)


def test_a_fault_that_is_no_lack_of_time_is_none_of_a_look(house: House) -> None:
    begun: list[Any] = []
    with pytest.raises(OperationalError):
        look_at_a_falling_server(house, begun)
    assert not begun


def test_a_file_of_exactly_so_many_rows_as_it_may_have_is_whole(
    house: House, auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at, rows in ((f"{SOUGHT}&format=csv", MADE), (f"{AUDIT}?format=csv", all_of(house))):
        monkeypatch.setattr(files, "MOST_ROWS", rows)
        assert len(sheet(auditor.get(at))) == 1 + rows
        monkeypatch.setattr(files, "MOST_ROWS", rows - 1)
        assert sheet(auditor.get(at))[-1] == [f"Cut after {rows - 1} rows. Filter the list to get the rest."]


@pytest.mark.usefixtures("never_at_first")
def test_a_file_that_the_database_cuts_short_says_so_in_its_last_line(
    house: House, auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with reading(house.system):
        third = AuditEntry.objects.filter(project_id=house.world.project).order_by("-occurred_at", "-id")[2]

    def slow_from_there(page: Any, request: HttpRequest, rows: QuerySet[Any], term: str) -> tuple[Any, bool]:
        where = "(factory_auditentry.id > %s OR pg_sleep(1) IS NOT NULL)"
        return rows.extra(where=[where], params=[str(third.pk)]), False

    monkeypatch.setattr(BaseAdmin, "get_search_results", slow_from_there)
    monkeypatch.setattr(bounded_scan, "AT_ONCE", 2)
    monkeypatch.setattr(bounded_scan, "STRETCH_MS", 100)
    _, *rows, last = sheet(auditor.get(f"{AUDIT}?format=csv"))
    assert (len(rows), last) == (2, [UNFINISHED])


def test_a_file_looks_for_its_own_rows_and_for_no_page(
    house: House, auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, page = list[Any](), bounded_scan.BoundedScan.page

    def counted(
        look: bounded_scan.BoundedScan, place: Any, limit: int, **how: Any
    ) -> bounded_scan.ScannedRows:
        looks.append(limit)
        return page(look, place, limit, **how)

    monkeypatch.setattr(bounded_scan.BoundedScan, "page", counted)
    assert len(sheet(auditor.get(f"{SOUGHT}&format=csv"))) == 1 + MADE
    assert looks == [files.ROWS_AT_FIRST]


def test_words_that_are_sought_in_the_whole_list_instead_are_told_to_be(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    reviewer, inbox = signed_in(house.world.reviewer), "/admin/approvals/approvalrequest/?whose=closed&q=any"
    told = "Words were looked for among the newest 2,000 of the whole list alone."
    assert told not in text(reviewer.get(inbox))
    assert len(sheet(reviewer.get(f"{inbox}&format=csv"))) == 1
    monkeypatch.setattr(searching, "in_time", lambda *_: None)
    assert told in text(reviewer.get(inbox))
    *_, last = sheet(reviewer.get(f"{inbox}&format=csv"))
    assert last == [f"{told} Among those that were chosen it takes too long."]
    chosen = {"action": "approve_selected", "_selected_action": [str(uuid4())], "index": "0"}
    acted = reviewer.post("/admin/approvals/approvalrequest/?whose=pending&q=any", chosen, follow=True)
    assert ("Approve several" in text(acted), told in text(acted)) == (True, False), "that is another page"


@pytest.mark.usefixtures("never_at_first")
def test_a_file_in_which_nothing_is_found_for_long_ends_with_a_line_that_says_so(
    house: House, auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_scan, "AT_ONCE", 1)
    monkeypatch.setattr(files, "PATIENCE", 0.0)
    monkeypatch.setattr(files, "MOST_SECONDS", 0.001)
    [_, last] = sheet(auditor.get(f"{AUDIT}?action=CancelRun&format=csv"))
    assert last == [UNFINISHED]


PENDING = f"{url(ApprovalRequest, 'changelist')}?whose=pending"


def rejecting(asked: Asking, key: UUID) -> None:
    view = asked.view(key)
    with staged():
        decide_approval(
            asked.world.reviewer,
            approval_id=key,
            decision="reject",
            version=view.version,
            proposal_hash=view.proposal_hash,
        )


class Between:
    """Somebody who decides the newest question after it was found, and before its row is read."""

    def __init__(self, asked: Asking, key: UUID) -> None:
        self.act, self.done = (lambda: rejecting(asked, key)), False

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        reads_rows = re.search(r'"approvals_approvalrequest"."id" IN \((?!SELECT)', sql)
        if reads_rows and "summary" in sql and not self.done:
            self.done = True
            assert threads.at_once([self.act]) == [None]
        return execute(sql, params, many, context)


@pytest.mark.usefixtures("never_at_first")
@pytest.mark.parametrize("stretch", [1000, 4])
@pytest.mark.parametrize("file", [False, True], ids=["pages", "file"])
def test_what_stops_matching_while_it_is_read_takes_no_other_row_with_it(
    tenant_id: str, monkeypatch: pytest.MonkeyPatch, stretch: int, file: bool
) -> None:
    asked = asking(tenant_id)
    with staged():
        views = [asked.again().ask(summary=f"question {number}") for number in range(6)]
    monkeypatch.setattr(bounded_scan, "AT_ONCE", stretch)
    monkeypatch.setattr(site._registry[ApprovalRequest], "list_per_page", 1)
    monkeypatch.setattr(files, "ROWS_AT_FIRST", 1)
    monkeypatch.setattr(files, "ROWS_AT_ONCE", 1)
    client, between = signed_in(asked.world.operator), Between(asked, views[-1].id)
    with connection.execute_wrapper(between):
        if file:
            told = str(sheet(client.get(f"{PENDING}&format=csv")))
        else:
            told = "".join(text(page) for page in walk(client, PENDING))
    assert between.done
    assert sorted(set(re.findall("question [0-9]", told))) == [f"question {number}" for number in range(5)]
