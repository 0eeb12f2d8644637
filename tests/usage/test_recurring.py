"""Budgets that recur open the next month by themselves; a month that nothing covers is told in good time."""

import re
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from django.urls import reverse

from factory.kernel.errors import NotFound, VersionMismatch
from factory.kernel.tenancy import reading
from tests.console.test_pages import signed_in
from tests.support.api import Api
from tests.support.clocks import watch
from tests.support.evidence import journal, outbox, violations
from tests.support.races import race
from tests.usage.money_world import Money, this_month
from usage.commands import change_budget_amount, change_recurrence, create_budget, see_to_next_month
from usage.errors import BudgetExists, NextMonthOpen
from usage.models import Budget
from usage.pricing.periods import NOTICE, begins_at, next_month
from usage.reconcilers import NextMonthWorker
from usage.states import BUDGET_ENDING

pytestmark = pytest.mark.slow


def last_month() -> date:
    return (this_month() - timedelta(days=1)).replace(day=1)


def opened(
    m: Money, month: date, *, recurs: bool | None = True, amount: str = "25", wide: bool = False
) -> UUID:
    project = None if wide else m.project
    made = create_budget(m.ctx, project_id=project, month=month, amount=Decimal(amount), recurs=recurs)
    return UUID(made)


def row(m: Money, budget_id: UUID) -> Budget:
    with reading(m.ctx):
        return Budget.objects.get(pk=budget_id)


def rows(m: Money) -> list[tuple[date, Decimal, bool]]:
    with reading(m.ctx):
        found = Budget.objects.order_by("period_start")
        return [(each.period_start, each.amount, each.recurs) for each in found]


def due(m: Money, budget_id: UUID) -> dict[str, Any]:
    return {"budget_id": budget_id, "due_at": begins_at(row(m, budget_id).period_end) - NOTICE}


def wrong(m: Money) -> list[str]:
    return [one.code for one in violations(m.world.tenant) if one.code not in ("E2e", "E4f", "E4g")]


def test_the_next_month_is_opened_a_week_before_it_begins(m: Money, monkeypatch: pytest.MonkeyPatch) -> None:
    now = this_month()
    first = opened(m, now)
    time = watch(monkeypatch, begins_at(next_month(now)) - NOTICE - timedelta(microseconds=1))
    assert see_to_next_month(m.ctx, **due(m, first)) is None
    time.pass_(microseconds=1)
    made = see_to_next_month(m.ctx, **due(m, first))
    assert rows(m) == [(now, 25, True), (next_month(now), 25, True)]
    assert see_to_next_month(m.ctx, **due(m, first)) is None, "once"
    assert journal(m.ctx, UUID(str(made)))[0] == ("None", "Open", "BudgetRenewed")
    assert m.figures(UUID(str(made))) == ("25", "0", "0", "0")
    assert wrong(m) == []


def test_the_amount_is_that_of_the_month_it_continues(m: Money, monkeypatch: pytest.MonkeyPatch) -> None:
    first = opened(m, this_month())
    finance = m.world.finance
    change_budget_amount(finance, budget_id=first, amount=Decimal(70), version=row(m, first).version)
    watch(monkeypatch, begins_at(next_month(this_month())) - timedelta(days=2))
    made = see_to_next_month(m.ctx, **due(m, first))
    assert row(m, UUID(str(made))).amount == 70


def test_the_schedule_makes_up_for_months_that_it_missed(m: Money) -> None:
    long_ago = (last_month() - timedelta(days=1)).replace(day=1)
    opened(m, long_ago)
    NextMonthWorker().run_once(m.world.tenant)
    NextMonthWorker().run_once(m.world.tenant)
    months = [month for month, _, _ in rows(m)]
    assert months[:2] == [long_ago, this_month()], "the present one, and none that is over"
    assert wrong(m) == []


def test_two_schedulers_and_a_person_at_once_make_one(m: Money) -> None:
    first = opened(m, last_month())
    see = partial(see_to_next_month, m.ctx, **due(m, first))
    by_hand = partial(create_budget, m.ctx, project_id=m.project, month=this_month(), amount=Decimal(9))
    met = race(see, by_hand, see, see)
    assert [type(one).__name__ for one in met if isinstance(one, Exception)] in ([], ["BudgetExists"])
    [_, (month, amount, recurs)] = rows(m)
    assert (month, recurs) == (this_month(), True)
    assert amount in (9, 25)
    assert row(m, first).next_due_at is None
    assert wrong(m) == []


@pytest.mark.parametrize(("word", "recurs"), [(None, True), (True, True), (False, False)])
def test_one_that_a_person_opens_for_the_next_month_continues_it(
    m: Money, word: bool | None, recurs: bool
) -> None:
    first = opened(m, last_month())
    opened(m, this_month(), recurs=word, amount="40")
    assert rows(m)[1] == (this_month(), 40, recurs)
    assert see_to_next_month(m.ctx, **due(m, first)) is None
    with pytest.raises(BudgetExists):
        opened(m, this_month())


def test_recurrence_begins_and_ends_on_the_newest_month(m: Money) -> None:
    first = opened(m, last_month(), recurs=False)
    finance = m.world.finance
    version = row(m, first).version
    change_recurrence(finance, budget_id=first, recurs=True, version=version)
    with pytest.raises(VersionMismatch):
        change_recurrence(finance, budget_id=first, recurs=False, version=version)
    made = UUID(str(see_to_next_month(m.ctx, **due(m, first))))
    with pytest.raises(NextMonthOpen):
        change_recurrence(finance, budget_id=first, recurs=False, version=row(m, first).version)
    change_recurrence(finance, budget_id=made, recurs=False, version=row(m, made).version)
    assert row(m, made).recurs is False
    assert journal(m.ctx, made)[-1] == ("Open", "Open", "RecurrenceChanged")
    with pytest.raises(NotFound):
        change_recurrence(finance, budget_id=m.project, recurs=True, version=1)
    assert wrong(m) == []


def test_a_month_that_nothing_covers_is_told_once(m: Money, monkeypatch: pytest.MonkeyPatch) -> None:
    first = opened(m, this_month(), recurs=False)
    m.dispatched("1")
    watch(monkeypatch, begins_at(next_month(this_month())) - timedelta(days=6))
    for _ in range(2):
        see_to_next_month(m.ctx, **due(m, first))
    [(topic, told)] = outbox(m.ctx, first)
    assert (topic, told["projectId"]) == (BUDGET_ENDING, str(m.project))
    assert told["nextMonth"] == f"{next_month(this_month()):%Y-%m}"
    assert wrong(m) == []


@pytest.mark.parametrize(
    "why", ["nothing draws on it", "the project's next month", "the tenant's next month"]
)
def test_nothing_is_told_where_nothing_is_missed(m: Money, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    first = opened(m, this_month(), recurs=False)
    if why != "nothing draws on it":
        m.dispatched("1")
        opened(m, next_month(this_month()), recurs=False, wide="tenant" in why)
    watch(monkeypatch, begins_at(next_month(this_month())) - timedelta(days=6))
    see_to_next_month(m.ctx, **due(m, first))
    assert outbox(m.ctx, first) == []


def test_the_tenants_own_budget_is_missed_too(m: Money, monkeypatch: pytest.MonkeyPatch) -> None:
    first = opened(m, this_month(), recurs=False, wide=True)
    m.dispatched("1")
    watch(monkeypatch, begins_at(next_month(this_month())) - timedelta(days=6))
    see_to_next_month(m.ctx, **due(m, first))
    [(_, told)] = outbox(m.ctx, first)
    assert told["projectId"] is None


def test_over_http_a_budget_is_told_to_recur_and_not_any_more(m: Money) -> None:
    finance = Api.as_(m.world.finance)
    amount = {"amount": "25.000000", "currency": "USD"}
    month = f"{this_month():%Y-%m}"
    made = finance.post(
        "/factory/budgets", {"scope": "project", "period": month, "amount": amount, "recurs": True}
    )
    body = made.json()
    assert (made.status_code, body["recurs"]) == (201, True)
    url = f"/factory/budgets/{body['budgetId']}/recurrence"
    told = finance.post(url, {"recurs": False, "version": body["version"]})
    assert (told.status_code, told.json()["recurs"]) == (200, False)
    assert finance.post(url, {"recurs": True, "version": body["version"]}).status_code == 409
    assert Api.as_(m.world.observer).post(url, {"recurs": True, "version": 2}).status_code == 403


def test_in_the_console_recurrence_is_seen_begun_and_ended(m: Money) -> None:
    finance = signed_in(m.world.finance)
    new = reverse("admin:usage_new_budget")
    wanted = f"{next_month(this_month()):%Y-%m}"
    offered = finance.get(f"{new}?month={wanted}").content.decode()
    assert re.search(f'value="{wanted}"[^>]*checked', offered)
    sent = {"month": f"{this_month():%Y-%m}", "amount": "25", "next": "recurs"}
    finance.post(new, sent)
    [(_, _, recurs)] = rows(m)
    assert recurs
    with reading(m.ctx):
        budget = Budget.objects.get()
    page = reverse("admin:usage_budget_change", args=[budget.pk])
    act = reverse("admin:usage_budget_recurrence", args=[budget.pk])
    assert "It recurs: on" in text(finance.get(page))
    assert "End its recurrence" in text(finance.get(page))
    assert "without a budget no run starts in it" in text(finance.get(act))
    assert "does not recur any more" in text(finance.post(act, {"version": budget.version}, follow=True))
    assert "Let it recur" in text(finance.get(page))
    assert act not in signed_in(m.world.observer).get(page).content.decode()


@pytest.mark.parametrize(("days", "told"), [(8, False), (7, True)])
def test_the_first_page_says_from_a_week_before_that_a_month_has_no_budget(
    m: Money, monkeypatch: pytest.MonkeyPatch, days: int, told: bool
) -> None:
    opened(m, this_month(), recurs=False)
    m.dispatched("1")
    begins = begins_at(next_month(this_month()))
    watch(monkeypatch, begins - timedelta(days=days))
    page = signed_in(m.world.finance).get("/admin/")
    words = f"No budget covers {begins:%B %Y} yet"
    assert (words in text(page)) is told
    assert (f"?month={begins:%Y-%m}" in page.content.decode()) is told
    assert words not in text(signed_in(m.world.observer).get("/admin/")), "who cannot open one is not asked"
    opened(m, next_month(this_month()), recurs=False)
    assert words not in text(signed_in(m.world.finance).get("/admin/"))


def test_once_the_month_has_begun_the_pages_say_that_nothing_can_start(m: Money) -> None:
    opened(m, last_month(), recurs=False)
    denied = m.reserve("1")
    assert denied.state == "Denied"
    month = f"{this_month():%B %Y}"
    assert f"No budget covers {month}" in text(signed_in(m.world.finance).get("/admin/"))
    project = reverse("admin:projects_project_change", args=[m.project])
    told = text(signed_in(m.world.workspace_admin).get(project))
    assert "no run can start in it as things stand" in told
    assert "It accepts runs" not in told
    opened(m, this_month(), recurs=False)
    assert "It accepts runs" in text(signed_in(m.world.workspace_admin).get(project))


def text(answer: Any) -> str:
    """What is read of a page."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())
