"""Lists: pages by key, what is shown as a file, and what is said where there is nothing."""

import csv
import io
import re
from html import unescape
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.http import HttpRequest
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

import config.urls  # noqa: F401 - it is what registers the pages
from config.console import NAVIGATION
from factory.console.lists import files
from factory.console.lists.columns import written
from factory.console.site import site
from factory.kernel.models import AuditEntry, WebhookSubscription
from factory.kernel.tenancy import reading
from runs.admin.tables.runs import RunAdmin
from runs.commands import cancel_run
from runs.models import Run
from tests.console.test_pages import IDS, PAGES, signed_in, url
from tests.support.client import Client
from tests.support.running import House
from tests.support.world import PEOPLE, World, second_world

AUDIT = "/admin/factory/auditentry/"
RUNS = "/admin/runs/run/"
FORMULA = '=HYPERLINK("https://elsewhere.example";"look")'


@pytest.fixture(scope="module")
def house() -> House:
    """More audit entries than a page holds, and a run whose reason is written for a spreadsheet."""
    made = House(f"t-{uuid4().hex[:16]}")
    run_id = made.run("single")
    cancel_run(made.world.operator, run_id=run_id, reason=FORMULA)
    for _ in range(16):
        made.accept("single")
    return made


@pytest.fixture(scope="module")
def auditor(house: House) -> Client:
    return signed_in(house.world.auditor)


@pytest.fixture(scope="module")
def stranger(house: House) -> World:
    return second_world(house.tenant)


def text(answer: Any) -> str:
    return answer.content.decode()


def keys(answer: Any) -> list[str]:
    return re.findall(rf"{AUDIT}([0-9a-f-]+)/change/", text(answer))


def way(answer: Any, rel: str) -> str:
    found = re.search(rf'rel="{rel}" href="([^"]+)"', text(answer))
    return unescape(found[1]) if found else ""


def sheet(answer: Any) -> list[list[str]]:
    assert answer["Content-Type"].startswith("text/csv")
    said = b"".join(answer.streaming_content).decode("utf-8-sig")
    return list(csv.reader(io.StringIO(said)))


@pytest.mark.parametrize("order", ["", "oldest"])
def test_every_row_is_on_one_page_in_order_and_the_way_back_is_the_same(
    house: House, auditor: Client, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site._registry[AuditEntry], "list_per_page", 10)
    with reading(house.system):
        rows = AuditEntry.objects.filter(project_id=house.world.project).order_by("-occurred_at", "-id")
        expected = [str(key) for key in rows.values_list("pk", flat=True)]
    expected = expected[::-1] if order else expected
    at, pages = f"{AUDIT}?{urlencode({'order': order})}", []
    with CaptureQueriesContext(connection) as asked:
        while at:
            page = auditor.get(at)
            pages.append((at, keys(page)))
            at = way(page, "next")
    assert [key for _, found in pages for key in found] == expected
    assert len(pages) > 1
    own = [q["sql"] for q in asked.captured_queries if "factory_auditentry" in q["sql"]]
    assert own
    assert not [sql for sql in own if re.search(r"OFFSET|COUNT\(\*\)", sql)]
    back = auditor.get(way(auditor.get(pages[-1][0]), "prev"))
    assert keys(back) == pages[-2][1]


def test_what_an_address_asks_for_wrongly_is_said_and_makes_no_file(auditor: Client) -> None:
    for wrong, said in (
        ("after=x", "“x” is no place in this list. The list is shown from its beginning, without filters."),
        ("before=2026-01-01", "“2026-01-01” is no place in this list."),
        (f"after=yesterday~{uuid4()}", "is no place in this list."),
        ("nonsense=1", "The address holds a filter that this list does not have."),
        ("order=x", "“x” is no value of “order” in an address. Newest first is shown."),
        ("outcome=x", "“x” is no outcome here. So nothing is shown."),
        (f"q={'x' * 201}", "The search has more than 200 characters. Its first 200 are looked for."),
        ("format=xml", "“xml” is no value of “format” in an address. The list is shown as a page"),
    ):
        answer = auditor.get(f"{AUDIT}?{wrong}", follow=True)
        assert (answer.status_code, said in unescape(text(answer))) == (200, True), wrong
        assert said not in unescape(text(auditor.get(AUDIT))), "once"
        if "format" not in wrong:
            file = auditor.get(f"{AUDIT}?{wrong}&format=csv")
            assert (file.status_code, said.split(". ")[0] in unescape(text(file))) == (400, True), wrong
    slip = text(auditor.get(f"{RUNS}?state__exact=Nope"))
    assert "“Nope” is no state here. So nothing is shown." in unescape(slip)
    assert auditor.get(f"{RUNS}?state__exact=Nope&format=csv").status_code == 400
    refused = auditor.get(f"{RUNS}?project__tenant_id__startswith=t")
    assert (refused.status_code, "The address was not understood" in text(refused)) == (400, True)


def test_no_words_turn_others_round(tenant_id: str) -> None:
    house = House(tenant_id)
    auditor = signed_in(house.world.auditor)
    cancel_run(house.world.operator, run_id=house.accept("single"), reason="see \u202efdp.exe")
    for form in ("", "&format=csv"):
        answer = auditor.get(f"{AUDIT}?action=CancelRun{form}")
        shown = "".join(map(bytes.decode, answer.streaming_content)) if form else text(answer)  # type: ignore[attr-defined]
        assert "see ⟨U+202E⟩fdp.exe" in shown
        assert "\u202e" not in shown


def test_the_file_holds_what_is_shown_and_nothing_that_a_spreadsheet_would_run(
    house: House, auditor: Client
) -> None:
    asked = {"action": "CancelRun", "order": "oldest"}
    heads, *rows = sheet(auditor.get(f"{AUDIT}?{urlencode({**asked, 'format': 'csv'})}"))
    shown = auditor.get(f"{AUDIT}?{urlencode(asked)}")
    assert heads == ["Time", "Actor", "Did", "About", "Outcome", "Reason", "Way in"]
    assert len(rows) == len(keys(shown)) == 1
    [(at, actor, _, about, outcome, reason, _)] = rows
    assert (actor, outcome, reason) == (house.world.operator.actor.subject, "done", f"'{FORMULA}")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", at)
    assert re.fullmatch(r"run [0-9a-f-]{36}", about), "The whole id, not the end that is enough for the eye"
    everything = sheet(auditor.get(f"{AUDIT}?format=csv"))
    assert len(everything) > 17


def test_a_file_is_cut_at_its_limit_and_says_so(auditor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_ROWS", 10)
    monkeypatch.setattr(files, "ROWS_AT_FIRST", 3)
    monkeypatch.setattr(files, "ROWS_AT_ONCE", 4)
    lines = sheet(auditor.get(f"{AUDIT}?format=csv"))
    assert len(lines) == 1 + 10 + 1
    assert lines[-1][0].startswith("Cut after 10 rows.")


def test_a_file_is_for_whoever_may_open_the_list_and_of_their_place(house: House, stranger: World) -> None:
    assert signed_in(house.world.requester).get(f"{AUDIT}?format=csv").status_code == 403
    assert len(sheet(signed_in(stranger.auditor).get(f"{AUDIT}?format=csv"))) < 17
    elsewhere = sheet(signed_in(stranger.operator).get(f"{RUNS}?format=csv"))
    assert len(elsewhere) == 1


def test_every_column_of_a_list_has_a_value_for_its_file() -> None:
    for model, page in site._registry.items():
        fields = {field.name for field in model._meta.get_fields()}
        for name in {*page.list_display, *getattr(page, "file_columns", ())} - {"action_checkbox", "__str__"}:
            column = getattr(page, name, None)
            button = getattr(column, "short_description", None) == ""
            assert button or name in fields or hasattr(column, "value"), f"{page}: {name}"


@pytest.mark.parametrize(("model", "page"), PAGES, ids=IDS)
def test_a_list_says_what_it_finds_what_would_stand_there_and_how_to_see_all(
    stranger: World, model: Any, page: Any
) -> None:
    assert page.nothing_yet.endswith(".")
    if model._meta.model_name == "setting":
        return
    assert bool(page.search_fields) == bool(page.search_help_text)
    client = signed_in(stranger.tenant_admin)
    menu = {str(item["link"]): item["title"] for group in NAVIGATION for item in group["items"]}
    shown = text(client.get(url(model, "changelist")))
    where = shown.partition('aria-label="Where you are"')[2].partition("</nav>")[0]
    assert menu.get(url(model, "changelist"), page.name) == page.name
    assert re.search(rf"<h1>\s*{page.name}\s*</h1>", shown)
    assert re.search(rf">\s*{page.name}\s*</a", where), "one name everywhere"
    searched = text(client.get(f"{url(model, 'changelist')}?q=never-heard-of-it"))
    if page.search_fields:
        assert "Nothing matches “never-heard-of-it”" in searched
        assert "Clear the search and the filters" in searched
    empty = client.get(f"{url(model, 'changelist')}?q=&state__exact=&state=")
    assert empty.status_code == 200, "What the form sends empty is not chosen"


@pytest.mark.parametrize(
    ("path", "term"),
    [
        (RUNS, "single"),
        ("/admin/factory/journalentry/", "run"),
        ("/admin/factory/auditentry/", "run"),
        ("/admin/factory/outboxevent/", "run"),
    ],
)
def test_the_big_lists_find_by_whole_names_and_ids(house: House, path: str, term: str) -> None:
    operator = signed_in(house.world.operator)
    with reading(house.system):
        run_id = AuditEntry.objects.filter(action="CancelRun").get().subject.removeprefix("run:")
    by_id = text(operator.get(f"{path}?q={run_id}"))
    assert run_id in by_id
    assert "Nothing matches" in text(operator.get(f"{path}?q={uuid4()}"))
    assert "Nothing matches" in text(operator.get(f"{path}?q={run_id[:12]}"))
    if term == "single":
        assert run_id in text(operator.get(f"{path}?q={term}&state__exact=Cancelled"))


@pytest.mark.parametrize("member", [*PEOPLE, "tenant_admin", "platform_admin"])
def test_everybody_opens_what_the_menu_offers_and_nothing_else(house: House, member: str) -> None:
    person: Any = getattr(house.world, member)
    client = signed_in(person)
    offered = set(re.findall(r'href="(/admin/[a-z_]+/[a-z_]+/)"', text(client.get("/admin/"))))
    for model, page in PAGES:
        address = url(model, "changelist")
        answer = client.get(address)
        assert answer.status_code in (200, 403, 404), address
        assert (address in offered) <= (answer.status_code == 200), address
        request: Any = answer.wsgi_request
        for may in ("add", "change", "delete"):
            assert not getattr(page, f"has_{may}_permission")(request), address
        assert "delete_selected" not in page.get_actions(request)
    assert reverse("admin:index") == "/admin/"
    assert site._actions == {} or set(site._actions) == {"delete_selected"}


def test_whoever_opens_an_entry_reads_whether_its_chain_holds(house: House, auditor: Client) -> None:
    with reading(house.system):
        entry = AuditEntry.objects.filter(action="CancelRun").get()
    assert "Intact: " in text(auditor.get(f"{AUDIT}{entry.pk}/change/"))


def test_what_takes_too_long_to_look_up_is_said_on_a_page(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, every = signed_in(house.world.operator), RunAdmin.get_queryset

    def slow(page: RunAdmin, request: HttpRequest) -> QuerySet[Run]:
        return every(page, request).extra(where=["pg_sleep(9) IS NOT NULL"])

    monkeypatch.setattr(RunAdmin, "get_queryset", slow)
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = '200ms'")
    try:
        answer = client.get(RUNS)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET statement_timeout")
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert "This takes too long to look up" in text(answer)
    assert "one filter instead of two" in text(answer)


def test_a_file_holds_what_an_endpoint_answered_as_it_is_and_not_as_html() -> None:
    row = WebhookSubscription(failures=2, last_error='"a" < b')
    column = site._registry[WebhookSubscription].health
    assert written(column.value(row)) == '2 failures in a row: "a" < b'
