"""Finance at the console: what is in use of a budget and by what, and what was used in a time, by what."""

import csv
import io
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from html import unescape
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from django.urls import reverse

from factory.console.dashboard import Figure, FirstPage
from factory.kernel.context import Context, system
from factory.kernel.tenancy import bound, reading
from projects.commands import add_member, onboard_project
from projects.commands.inputs import NewEnvironment, NewMember
from tests.console.test_pages import signed_in
from tests.support.proposals import HOSTILE
from tests.support.queries import within_budget
from tests.support.receipts import costing, price_models, receipt, thinking
from tests.support.running import House
from tests.support.world import context_of, second_world, subject_of
from usage.admin.detail import movements
from usage.commands import change_budget_amount, create_budget
from usage.models import Budget, LedgerEntry, PricingRevision, UsageSum
from usage.pricing.periods import month_of, next_month
from usage.selectors import exploring

pytestmark = [pytest.mark.slow, pytest.mark.one_day]
ODD = HOSTILE[0][:60]


@pytest.fixture(scope="module")
def house() -> House:
    """One run that is through and whose cost is known, one with a call of unknown cost, one that is open."""
    made = House(f"t-{uuid4().hex[:16]}", budget="20")
    create_budget(made.system, project_id=None, month=month_of(datetime.now(UTC)), amount=Decimal(100))
    price_models(made, big_1="1.005", small_2="0.25")
    worker = made.hand(slots=8)
    made.run("single")
    calls = [thinking(), thinking("small-2"), costing("0.75")]
    worker.report(worker.take(), output={"found": 1}, receipts=calls)
    made.run("single")
    unknown = receipt(kind="model", provider="=SUM(1)", name=ODD, quantities=None)
    worker.report(worker.take(), output={"found": 1}, receipts=[costing("2"), unknown])
    made.run("single")
    return made


def budget_of(house: House, *, wide: bool = False) -> Budget:
    with reading(house.system):
        found: Budget = Budget.objects.get(project=None if wide else house.world.project)
    return found


def page_of(member: Context, budget: Budget, query: str = "") -> str:
    answer = signed_in(member).get(reverse("admin:usage_budget_change", args=[budget.pk]) + query)
    assert answer.status_code == 200
    return words(answer)


def words(answer: Any) -> str:
    """What is read of a page, with what is said above it."""
    main = answer.content.decode().partition('<div id="main"')[2]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", main)).split())


def test_a_budget_says_how_much_is_in_use_by_what_and_what_happens_then(house: House) -> None:
    told = page_of(house.world.finance, budget_of(house))
    assert "60 % in use: 8.00 USD of 20.00 USD" in told
    assert "Spent 4.01 USD (20 %)" in told, (
        "1.005 is a cent more than 1.00: rounded half up, once, at the end"
    )
    assert "Held 3.00 USD (15 %)" in told
    assert "Reserved 5.00 USD (25 %)" in told
    assert "failure class: budget" in told
    assert "what further runs can reserve of this budget" in told
    assert "is tighter" not in told, "the tenant has 92 of its 100 left"
    assert "asks for more than 100.00 USD waits for a person's decision" in told
    assert "No budget covers the month after it" in told
    wide = page_of(house.world.finance, budget_of(house, wide=True))
    assert "only projects with a budget of their own" in wide
    assert "free again if no worker takes the run by then" in told
    create_budget(
        house.system,
        project_id=house.world.project,
        month=next_month(month_of(datetime.now(UTC))),
        amount=Decimal(1),
    )
    own = page_of(house.world.finance, budget_of_now(house))
    assert "This project has a budget for the month after it." in own


def budget_of_now(house: House) -> Budget:
    with reading(house.system):
        rows = Budget.objects.filter(project=house.world.project)
        found: Budget = rows.get(period_start=month_of(datetime.now(UTC)))
    return found


def test_the_ledger_tells_each_movement_in_words_with_what_was_left_after_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = budget_of_now(house)
    told = page_of(house.world.finance, budget).partition("Left after it, USD")[2]
    steps = ["set aside for a run.", "A run ended: 2.00 USD spent, 3.00 USD kept back for calls of unknown"]
    steps += ["A run ended: 2.01 USD spent, 3.00 USD free again.", "The budget was opened with 20.00 USD."]
    places = [told.index(step) for step in steps]
    assert places == sorted(places), "newest first"
    assert "spent +2.00, held +3.00 as before" in told, "it moved nothing that was free"
    monkeypatch.setattr(movements, "ENTRIES", 5)
    newest = page_of(house.world.finance, budget)
    assert "opened with" not in newest
    with reading(house.system):
        lines = movements.movements(budget, None).lines
    older = page_of(house.world.finance, budget, f"?before={lines[-1].sequence}")
    assert "The budget was opened with 20.00 USD." in older
    assert "These go back to the first movement of all." in page_of(house.world.finance, budget, "?before=2")
    first = page_of(house.world.finance, budget, "?before=1")
    assert "Nothing stands before that." in first
    assert "go back to the first" not in first
    assert "before=x" not in page_of(house.world.finance, budget, "?before=x"), "a place that is none is none"
    assert "“x” is no place in the ledger." in page_of(house.world.finance, budget, "?before=x")


def test_a_late_call_and_a_raise_are_told_as_what_they_are(tenant_id: str) -> None:
    late = House(tenant_id, budget="6")
    worker = late.hand()
    late.run("single")
    work = worker.take()
    worker.report(work, output={"found": 1}, receipts=[costing("1")])
    worker.receipts(work, costing("7"))
    budget = budget_of(late)
    told = page_of(late.world.finance, budget)
    assert "Overdrawn by 2.00 USD: 0.00 USD of 6.00 USD are left." in told
    assert "7.00 USD more spent" in told
    change_budget_amount(late.world.finance, budget_id=budget.pk, amount=Decimal(10), version=budget.version)
    assert "raised by 4.00 USD to 10.00 USD." in page_of(late.world.finance, budget)


def test_the_first_page_tells_of_the_tightest_budget_that_runs_draw_on(tenant_id: str) -> None:
    small, month = House(tenant_id, budget="20"), month_of(datetime.now(UTC))
    small.run("single")

    def money() -> Figure:
        page: FirstPage = signed_in(small.world.finance).get("/admin/").context["first"]
        [found] = [each for each in page.figures if each.label.startswith("Budget of")]
        assert not found.alarm or found.alarm in page.lead
        return found

    assert (money().value, money().tone) == ("15.00", "plain")
    create_budget(small.system, project_id=None, month=month, amount=Decimal("4.20"))
    tight = money()
    assert (tight.label, tight.value, tight.tone) == (f"Budget of {month:%B}, the tenant's", "4.20", "bad")
    assert tight.alarm == (
        "Of the tenant's budget only 4.20 USD are left: a run that asks for more fails. The newest one asked "
        "for 5.00 USD."
    )
    told = page_of(small.world.observer, budget_of(small))
    assert "The tenant's budget is tighter: 4.20 USD left." in told
    assert "is tighter" not in page_of(small.world.finance, budget_of(small, wide=True))


def test_who_decides_over_money_sets_it_and_others_are_offered_nothing(tenant_id: str) -> None:
    small = House(tenant_id, budget="20")
    small.run("single")
    finance, observer = signed_in(small.world.finance), signed_in(small.world.observer)
    budget = budget_of(small)
    amount = reverse("admin:usage_budget_amount", args=[budget.pk])
    assert amount in finance.get(reverse("admin:usage_budget_change", args=[budget.pk])).content.decode()
    assert observer.get(amount).status_code == 403
    assert observer.post(amount, {"amount": "1", "version": "1"}).status_code == 403
    assert "Amount now 20.00 USD Spent, reserved or held 5.00 USD" in words(finance.get(amount))
    for wrong, said in (
        ("4.99", "already spent or promised"),
        ("much", "not a plain decimal"),
        ("-9", "negative"),
    ):
        refused = finance.post(amount, {"amount": wrong, "version": str(budget.version)})
        assert refused.status_code in (400, 422), wrong
        assert said in words(refused)
    assert "Nothing was done Look below at Amount in USD" in words(refused)
    assert "must not be negative" in words(refused)
    assert words(refused).count("negative") == 1, "once, and in no other language than the page's"
    assert "/amount" not in words(refused)
    finance.post(amount, {"amount": "30.5", "version": str(budget.version)})
    assert budget_of(small).amount == Decimal("30.5")
    late = finance.post(amount, {"amount": "31", "version": str(budget.version)})
    assert late.status_code == 409, "it is not any more as it was shown"
    assert f"it is 30.50 USD now (version {budget.version + 1}, set {datetime.now(UTC):%d %b %Y}" in words(
        late
    )
    assert "The 31.00 USD that you typed" in words(late)
    assert 'value="31"' in late.content.decode()
    assert f'name="version" value="{budget.version + 1}"' in late.content.decode()
    new, month = reverse("admin:usage_new_budget"), next_month(month_of(datetime.now(UTC)))
    assert observer.get(new).status_code == 403
    assert new in finance.get(reverse("admin:usage_budget_changelist")).content.decode()
    sent = {"month": f"{month:%Y-%m}", "amount": "7"}
    this = month_of(datetime.now(UTC))
    form = finance.get(new)
    assert f"{this:%B %Y}, which has a budget already {month:%B %Y} {next_month(month):%B %Y}" in words(form)
    assert f'value="{month:%Y-%m}" required checked' in form.content.decode(), "the first month without one"
    assert f'value="{this:%Y-%m}" required disabled' in form.content.decode(), "there can be no second one"
    assert finance.post(new, sent).status_code == 302
    again = finance.post(new, sent)
    assert "already a budget" in words(again)
    with reading(small.system):
        made = Budget.objects.get(period_start=month)
    assert made.project_id == small.world.project
    assert reverse("admin:usage_budget_change", args=[made.pk]) in again.content.decode()
    listed: Any = finance.get(f"{reverse('admin:usage_budget_changelist')}?format=csv")
    lines = list(csv.reader(io.StringIO(b"".join(listed.streaming_content).decode("utf-8-sig"))))
    assert [line[-1] for line in lines] == [
        "Month ends",
        *(f"{end:%Y-%m-%d}T00:00:00+00:00" for end in (next_month(month), month)),
    ], "a time, and not how long until then"


def test_money_of_the_tenant_is_seen_but_not_the_runs_of_others(house: House) -> None:
    world = house.world
    wide = budget_of(house, wide=True)
    told = page_of(world.observer, wide)
    assert "Reserved by open runs of this project" in told
    with reading(house.system):
        foreign = movements.movements(wide, UUID(int=7)).lines
    assert {line.run_id for line in foreign} == {None}
    assert [line.elsewhere for line in foreign][-2:] == [True, False]
    made = onboard_project(
        house.system, slug="third", name="Third", environments=[NewEnvironment("x")],
        members=[NewMember(subject_of(house.tenant, "next-door"), ("Observer",), ())],
    )  # fmt: skip
    neighbour = context_of(subject_of(house.tenant, "next-door"), house.tenant, UUID(made["projectId"]))
    with reading(house.system):
        entry = (
            LedgerEntry.objects.filter(budget=wide).exclude(reservation=None).select_related("reservation")[0]
        )
    run, row = str(entry.reservation.run_id), reverse("admin:usage_ledgerentry_change", args=[entry.pk])
    shown = signed_in(world.observer).get(row).content.decode()
    assert run in shown
    assert re.search(r"<h1>Reserved: [+−]5\.00 USD</h1>", shown)
    assert f'href="{reverse("admin:usage_budget_change", args=[wide.pk])}"' in shown
    assert f"<dt>Transaction id</dt><dd><code>{entry.transaction_id}</code></dd>" in shown
    entries = signed_in(world.observer).get(reverse("admin:usage_ledgerentry_changelist"))
    for said in ("−5.00 USD", "+5.00 USD", "reserved", "left", "single …"):
        assert said in words(entries).replace("… ", "…"), said
    assert "5.000000" not in words(entries)
    for account, said in (("available", "Left"), ("committed", "Reserved")):
        assert f'<option value="{account}">{said}</option>' in entries.content.decode(), "as the column says"
    only = signed_in(world.observer).get(
        reverse("admin:usage_ledgerentry_changelist"), {"account": "available"}
    )
    assert "−5.00 USD" in words(only)
    assert "+5.00 USD" not in words(only)
    for url in (row, reverse("admin:usage_ledgerentry_changelist")):
        shown = signed_in(neighbour).get(url)
        assert shown.status_code == 200
        assert run not in shown.content.decode()
    assert "of another project" in signed_in(neighbour).get(row).content.decode()
    stranger = second_world(house.tenant)
    for member in (stranger.finance, stranger.tenant_admin):
        answer = signed_in(member).get(reverse("admin:usage_budget_change", args=[wide.pk]))
        assert answer.status_code == 404


def test_a_budgets_page_asks_a_known_number_of_questions(house: House) -> None:
    client = signed_in(house.world.finance)
    url = reverse("admin:usage_budget_change", args=[budget_of_now(house).pk])
    client.get(url)
    with within_budget("console budget"):
        assert client.get(url).status_code == 200


def explored(member: Context, **asked: str) -> tuple[Any, str]:
    answer = signed_in(member).get(reverse("admin:usage_explorer"), asked)
    assert answer.status_code == 200
    return answer, words(answer)


def test_the_explorer_adds_up_what_is_known_and_counts_what_is_not(house: House) -> None:
    answer, told = explored(house.world.finance)
    assert "4.01 USD for 4 calls of known cost. The cost of 1 call is not known, and not in it." in told
    assert "The largest part, 69 %, was factory-tools/git-log." in told
    assert "gateway.example/ big-1 25 % 1.01 1.01 1 0 12,400 850" in told
    assert "All of it 100 % 4.01" in told
    assert ODD in told.replace("/ ", "/"), "somebody else's words, as words"
    assert ODD not in answer.content.decode(), "and as nothing else"
    assert f"Most on {datetime.now(UTC):%d %b %Y}: 4.01 USD." in told
    _, told = explored(house.world.finance, by="workflow", period="7")
    assert "single 100 % 4.01" in told
    _, told = explored(house.world.finance, by="release", period="30")
    assert "sample@1.0.0 100 % 4.01" in told
    answer, told = explored(house.world.finance, by="day", period="month")
    [calls] = re.findall(r'href="([^"]+priced_at__gte[^"]+)"><span[^>]*>\d\d \w{3}', answer.content.decode())
    listed = signed_in(house.world.finance).get(unescape(calls)).content.decode()
    assert listed.count('class="field-at') == 5
    assert "Only calls from" in listed
    _, told = explored(house.world.finance, period="last-month")
    assert "Nothing was used in this time" in told


def test_a_time_that_is_none_or_too_long_is_said(house: House) -> None:
    finance, today = house.world.finance, f"{datetime.now(UTC):%Y-%m-%d}"
    for first, last in (
        ("", ""),
        ("x", today),
        (today, "2020-01-01"),
        ("2026-02-30", today),
        ("0001-01-01", today),
    ):
        _, told = explored(finance, **{"period": "own", "from": first, "to": last})
        assert "That is no time" in told, (first, last)
    _, told = explored(finance, **{"period": "own", "from": "2020-01-01", "to": today})
    assert "At most 366 days are added up at once" in told
    assert "4.01 USD for 4 calls" in told
    _, told = explored(finance, period="nonsense", by="cost; DROP TABLE")
    assert "By model or tool" in told
    assert "“cost; DROP TABLE” is no value of “by” in an address. “nonsense” is no value of “period”" in told
    file = signed_in(finance).get(
        reverse("admin:usage_explorer"), {"period": "own", "from": "x", "format": "csv"}
    )
    assert file.status_code == 400, "no file of another time"
    assert "name a first day" in file.content.decode()


def test_of_too_much_the_last_days_are_shown_and_that_is_said(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exploring, "MOST_SUMS", 1)
    today = datetime.now(UTC).date()
    first, last = f"{today - timedelta(days=3)}", f"{today + timedelta(days=3)}"
    _, told = explored(house.world.finance, **{"period": "own", "from": first, "to": last})
    assert "Not all of that time is shown" in told
    assert f"begins on {today:%d %b %Y}, a day which alone is more" in told
    assert "4.01 USD for 4 calls of known cost." in told, "the newest day is whole, however much it is"
    monkeypatch.setattr(exploring, "MOST_GROUPS", 2)
    monkeypatch.setattr(exploring, "MOST_SUMS", 1000)
    with reading(house.system):
        month = month_of(datetime.now(UTC))
        found = exploring.explore("model", house.world.project, month, next_month(month))
    assert [str(used.cost) for _, used in found.groups] == ["2.750000", "1.005000"]
    assert found.more
    assert found.total.cost == Decimal("4.005000")


def test_only_the_oldest_days_are_left_out_and_only_of_what_its_reader_asked_for(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = datetime.now(UTC).date()
    earlier, later = today - timedelta(days=3), today + timedelta(days=10)
    made = onboard_project(
        house.system, slug="other", name="Other", environments=[NewEnvironment("x")], members=[]
    )
    monkeypatch.setattr(exploring, "MOST_SUMS", 5)
    with bound(house.system):
        for n in range(6):
            _sum(house, UUID(made["projectId"]), today, str(n))
        found = exploring.explore("model", house.world.project, earlier, later)
        assert (found.start, found.total.cost) == (earlier, Decimal("4.005")), "others' usage cuts nothing"
        _sum(house, house.world.project, today - timedelta(days=1), "small")
        found = exploring.explore("model", house.world.project, earlier, later)
        assert (found.start, found.total.cost, found.crowded) == (today, Decimal("4.005"), False)
        found = exploring.explore("project", None, earlier, later)
        assert (found.start, found.total.cost, found.crowded) == (today, Decimal("10.005"), True)
        transaction.set_rollback(True)


def _sum(house: House, project: UUID, day: date, name: str) -> None:
    place = {"tenant_id": house.tenant, "project_id": project, "workflow_id": "single"}
    call = {"run_id": uuid4(), "release_id": uuid4(), "kind": "tool", "provider": "p", "name": name}
    UsageSum.objects.create(**place, **call, day=day, calls=1, cost=Decimal(1))


def test_a_line_leads_to_the_calls_of_its_provider_alone(house: House) -> None:
    answer, _ = explored(house.world.finance)
    [calls] = re.findall(r'href="([^"]+q=big-1[^"]*)"', answer.content.decode())
    assert "provider=gateway.example" in calls
    client = signed_in(house.world.finance)
    listed = client.get(unescape(calls)).content.decode()
    assert listed.count('class="field-at') == 1
    assert "Only calls of gateway.example stand here." in listed
    other = client.get(unescape(calls).replace("gateway.example", "elsewhere.example")).content.decode()
    assert 'class="field-at' not in other
    assert (
        "A workflow leads to its runs, those of other times too"
        in explored(house.world.finance, by="workflow")[1]
    )


def test_what_the_whole_tenant_used_is_for_who_decides_over_its_money(house: House) -> None:
    world, url = house.world, reverse("admin:usage_explorer")
    scope = system(house.tenant, "test")
    look = NewMember(subject_of(house.tenant, "looks-on"), ("Observer",), ())
    add_member(scope, project_id=None, member=look)
    onlooker = signed_in(replace(world.observer, actor=replace(world.observer.actor, subject=look.subject)))
    admin = signed_in(world.tenant_admin)
    for client in (onlooker, admin):
        client.post("/admin/place/", {"place": f"{house.tenant}/"})
    refused = onlooker.get(url)
    assert refused.status_code == 403
    assert "is for who decides over its money" in refused.content.decode()
    assert onlooker.get(reverse("admin:usage_budget_changelist")).status_code == 403
    assert "/admin/usage/" not in onlooker.get("/admin/").content.decode()
    told = words(admin.get(url))
    assert "by any project of the tenant" in told
    assert "The main project 100 % 4.01" in told
    [stranger] = [second_world(f"{house.tenant}-c")]
    assert "Nothing was used in this time" in words(signed_in(stranger.finance).get(url))


def test_the_file_has_what_is_shown_with_every_place_and_no_formula(house: House) -> None:
    answer: Any = signed_in(house.world.finance).get(f"{reverse('admin:usage_explorer')}?format=csv")
    lines = list(csv.reader(io.StringIO(b"".join(answer.streaming_content).decode("utf-8-sig"))))
    assert lines[0][:4] == ["Model or tool", "Calls", "Calls of unknown cost", "Known cost, USD"]
    assert lines[1] == ["factory-tools/git-log", "2", "0", "2.750000", "0.000000", "0", "0"]
    assert lines[-1][1:4] == ["5", "1", "4.005000"]
    assert [line[0] for line in lines if "SUM" in line[0]] == [f"'=SUM(1)/{ODD}"]
    assert "usage-by-model-" in answer["Content-Disposition"]


def test_what_calls_used_and_cost_is_told_in_words(house: House) -> None:
    client = signed_in(house.world.finance)
    calls = words(client.get(reverse("admin:usage_usagerecord_changelist")))
    assert "12,400 input tokens, 850 output tokens" in calls
    assert "single …" in calls
    held = client.get(reverse("admin:usage_reservation_changelist"))
    assert "single …" in words(held)
    assert ">Open the reservation</a>" in held.content.decode()
    with reading(house.system):
        prices = PricingRevision.objects.get(number=1)
    listed = words(client.get(reverse("admin:usage_pricingrevision_changelist")))
    page = words(client.get(reverse("admin:usage_pricingrevision_change", args=[prices.pk])))
    assert " p1 " in listed
    assert "Prices p1" in page
    assert "factory-tools any 0.000020 USD for 1 second is final" in page


def test_only_who_may_look_at_the_whole_tenant_is_told_to_choose_it(house: House) -> None:
    assert "choose the whole tenant above" not in explored(house.world.requester)[1]
    assert "choose the whole tenant above" in explored(house.world.tenant_admin)[1]


def test_the_whole_of_another_tenant_is_no_place_to_look_at_the_projects_of_this_one(house: House) -> None:
    other, subject = second_world(f"{house.tenant}-far"), f"of-two@{house.tenant}.test"
    add_member(
        house.world.workspace_admin,
        project_id=house.world.project,
        member=NewMember(subject, ("Observer",)),
    )
    wide = NewMember(subject, ("WorkspaceAdmin",))
    add_member(replace(other.tenant_admin, project_id=None), project_id=None, member=wide)
    client = signed_in(context_of(subject, house.tenant, house.world.project))
    said = {}
    for tenant_id, project_id in ((house.tenant, house.world.project), (other.tenant, other.project)):
        assert client.post("/admin/place/", {"place": f"{tenant_id}/{project_id}"}).status_code == 302
        said[tenant_id] = "choose the whole tenant above" in words(
            client.get(reverse("admin:usage_explorer"))
        )
    assert said == {house.tenant: False, other.tenant: True}


def test_the_explorer_asks_a_known_number_of_questions(house: House) -> None:
    client, url = signed_in(house.world.finance), reverse("admin:usage_explorer")
    client.get(url)
    with within_budget("console explorer"):
        assert client.get(url).status_code == 200
