"""Finance at the console: what is in use of a budget and by what, and what was used in a time, by what."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from html import unescape
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.urls import reverse

from factory.context import Context
from factory.tenancy import reading
from tests.console.test_pages import signed_in
from tests.support.proposals import HOSTILE
from tests.support.queries import within_budget
from tests.support.running import House, costing, receipt, thinking
from tests.support.world import second_world
from usage.admin import movements
from usage.commands import change_budget_amount, create_budget
from usage.models import Budget
from usage.periods import month_of, next_month

pytestmark = pytest.mark.slow
ODD = HOSTILE[0][:60]


@pytest.fixture(scope="module")
def house() -> House:
    """One run that is through and whose cost is known, one with a call of unknown cost, one that is open."""
    made = House(f"t-{uuid4().hex[:16]}", budget="20")
    create_budget(made.system, project_id=None, month=month_of(datetime.now(UTC)), amount=Decimal(100))
    worker = made.hand(slots=8)
    made.run("single")
    calls = [thinking("1.005"), thinking("0.25", "small-2"), costing("0.75")]
    worker.report(worker.take(), output={"found": 1}, receipts=calls)
    made.run("single")
    unknown = receipt(kind="model", provider="gateway.example", name=ODD, quantities=None)
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
    """What is read of a page."""
    main = answer.content.decode().partition('<div id="content"')[2]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", main)).split())


def test_a_budget_says_how_much_is_in_use_by_what_and_what_happens_then(house: House) -> None:
    told = page_of(house.world.finance, budget_of(house))
    assert "60 % in use: 8.00 USD of 20.00 USD are left. The month ends in" in told
    assert "Spent 4.01 USD 20 %" in told, "1.005 is a cent more than 1.00: rounded half up, once, at the end"
    assert "Held 3.00 USD 15 % kept back until the cost of some of their calls is known" in told
    assert "Reserved 5.00 USD 25 %" in told
    assert "One that asks for more than is left fails at once, of the class budget" in told
    assert "asks for more than 100.00 USD waits for a person's decision" in told
    assert "No budget covers the month after it yet: without one, no run starts." in told
    assert "free again if no worker takes the run by then" in told
    create_budget(
        house.system,
        project_id=house.world.project,
        month=next_month(month_of(datetime.now(UTC))),
        amount=Decimal(1),
    )
    assert "A budget for the month after it is there." in page_of(house.world.finance, budget_of_now(house))


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
    assert "before=x" not in page_of(house.world.finance, budget, "?before=x"), "a place that is none is none"


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
    assert "Usage of a run became known after its end: 7.00 USD more spent." in told
    change_budget_amount(late.world.finance, budget_id=budget.pk, amount=Decimal(10), version=budget.version)
    assert "raised by 4.00 USD to 10.00 USD." in page_of(late.world.finance, budget)


def test_money_of_the_tenant_is_seen_but_not_the_runs_of_others(house: House) -> None:
    world = house.world
    wide = budget_of(house, wide=True)
    told = page_of(world.observer, wide)
    assert "Reserved by open runs of this project" in told
    with reading(house.system):
        foreign = movements.movements(wide, UUID(int=7)).lines
    assert {line.run_id for line in foreign} == {None}
    assert [line.elsewhere for line in foreign][-2:] == [True, False]
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
