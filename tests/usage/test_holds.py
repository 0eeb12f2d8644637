"""A hold can end: by a person who says what the usage cost, or that nobody will know, and by its age."""

import re
import time
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from html import unescape
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.urls import reverse

from approvals.commands import adopt_platform_policy, publish_policy_revision
from approvals.selectors import current_policy
from factory.kernel.errors import InvalidInput, NotFound
from factory.kernel.tenancy import reading
from factory.messaging.relay.delivery import drain
from factory.messaging.relay.destinations import Handlers
from tests.console.test_pages import signed_in
from tests.kernel.damage import admin_url
from tests.support.api import Api
from tests.support.clocks import watch
from tests.support.evidence import audits, journal, outbox, violations
from tests.support.races import race, refusals, row_held
from tests.support.world import second_world
from tests.usage.money_world import Money, costing, receipt
from usage import restore
from usage.commands import date_holds, expire_hold, settle_hold
from usage.errors import HoldOver, NotOverMoney, RunNotEnded, UsageOfSeveralModels
from usage.models import Reservation, UsageRecord, UsageSum
from usage.reconcilers import HoldExpiryWorker
from usage.states import USAGE_RECONCILED

pytestmark = pytest.mark.slow

BIG = {"kind": "model", "provider": "gateway", "name": "big-1", "quantities": {"inputTokens": 9000}}
WORDS = {"reason": "The bill came", "evidence": "INV-2026-114, line 3"}


@dataclass
class Held:
    """A run of which some usage is of unknown cost, and the budget that holds money for it."""

    money: Money
    budget: UUID
    run_id: UUID

    @property
    def row(self) -> Reservation:
        with reading(self.money.ctx):
            return Reservation.objects.get(run_id=self.run_id)

    @property
    def figures(self) -> tuple[str, ...]:
        return self.money.figures(self.budget)

    def usage(self) -> list[tuple[str, str | None]]:
        with reading(self.money.ctx):
            rows = UsageRecord.objects.filter(run_id=self.run_id).order_by("id")
            return [(row.state, None if row.cost is None else str(row.cost)) for row in rows]

    def settle(self, **more: Any) -> str:
        return settle_hold(self.money.world.finance, reservation_id=self.row.id, **WORDS | more)


@pytest.fixture
def held(m: Money) -> Held:
    return holding(m, [costing("1"), receipt(**BIG), receipt(**BIG)])


def holding(m: Money, calls: list[dict[str, Any]], budget: str = "20") -> Held:
    made = m.budget(budget)
    run_id = m.dispatched("5")
    m.receive(run_id, calls)
    m.settle(run_id)
    return Held(m, made, run_id)


def wrong(m: Money) -> list[str]:
    """Without those that are about runs: here there are none, and they say so."""
    return [one.code for one in violations(m.world.tenant) if one.code not in ("E2e", "E4f", "E4g")]


def says(m: Money, days: int | None) -> None:
    """The policy in force lets a hold become this old."""
    adopt_platform_policy(m.ctx)
    with reading(m.ctx):
        document = deepcopy(current_policy(m.ctx).document)
    document["spend"] = {"thresholdUsd": 100} | ({} if days is None else {"unknownHoldDays": days})
    publish_policy_revision(m.world.tenant_admin, document=document)
    drain(Handlers(), m.world.tenant)


def test_a_person_frees_the_money_and_the_usage_stays_unknown(held: Held) -> None:
    assert held.figures == ("15", "0", "1", "4")
    held.settle()
    assert held.figures == ("19", "0", "1", "0")
    assert held.usage() == [("Confirmed", "1.000000"), ("Uncertain", None), ("Uncertain", None)]
    row, m = held.row, held.money
    assert (row.held, row.hold_ended_by) == (0, m.world.finance.actor.subject)
    assert (row.hold_ended_reason, row.hold_ended_evidence) == (WORDS["reason"], WORDS["evidence"])
    assert m.ledger(held.budget)[-2:] == [("HoldEnded", "held", "-4"), ("HoldEnded", "available", "+4")]
    assert journal(m.ctx, row.id)[-1] == ("Settled", "Settled", "HoldReleased")
    assert audits(m.ctx, "SettleHold")[-1].outcome == "done"
    assert wrong(m) == []


def test_a_person_who_knows_the_figure_confirms_the_usage_at_it(held: Held) -> None:
    held.settle(cost=Decimal("3.000001"))
    assert held.figures == ("15.999999", "0", "4.000001", "0")
    costs = [("Confirmed", "1.000000"), ("Confirmed", "1.500001"), ("Confirmed", "1.500000")]
    assert held.usage() == costs
    m = held.money
    with reading(m.ctx):
        row = UsageRecord.objects.get(run_id=held.run_id, cost=Decimal("1.5"))
        total = UsageSum.objects.get(run_id=held.run_id, name="big-1")
    assert (row.settled_by, row.settled_reason) == (m.world.finance.actor.subject, WORDS["reason"])
    assert (total.uncertain, total.cost, total.estimated) == (0, Decimal("3.000001"), 0)
    assert journal(m.ctx, row.id)[-1] == ("Uncertain", "Confirmed", "UsageSettled")
    assert journal(m.ctx, held.row.id)[-1] == ("Settled", "Settled", "UsageAdjusted")
    told = [data for topic, data in outbox(m.ctx, held.run_id) if topic == USAGE_RECONCILED]
    assert [data["amountUsd"] for data in told] == ["1.500001", "1.500000"]
    assert wrong(m) == []


def test_a_figure_of_nothing_is_a_figure(held: Held) -> None:
    held.settle(cost=Decimal(0))
    assert held.figures == ("19", "0", "1", "0")
    assert held.usage()[1:] == [("Confirmed", "0.000000")] * 2
    assert wrong(held.money) == []


def test_a_figure_above_what_was_set_aside_is_booked_all_the_same(held: Held) -> None:
    held.settle(cost=Decimal(30))
    assert held.figures == ("-11", "0", "31", "0")
    assert wrong(held.money) == []


def test_a_figure_is_that_of_one_model_and_the_rest_stays_held(m: Money) -> None:
    held = holding(m, [receipt(**BIG), receipt(**BIG | {"name": "small-2"})])
    with pytest.raises(UsageOfSeveralModels, match="gateway/big-1, gateway/small-2"):
        held.settle(cost=Decimal(2))
    held.settle(cost=Decimal(2), provider="gateway", name="big-1")
    assert held.figures == ("15", "0", "2", "3")
    with pytest.raises(HoldOver):
        held.settle(cost=Decimal(2), provider="gateway", name="big-1")
    held.settle()
    assert held.figures == ("18", "0", "2", "0")
    held.settle(cost=Decimal(1), provider="gateway", name="small-2")
    assert held.figures == ("17", "0", "3", "0")
    assert wrong(m) == []


def test_what_is_over_is_refused_and_says_who_ended_it(held: Held) -> None:
    held.settle()
    with pytest.raises(HoldOver, match="was ended by"):
        held.settle()
    held.settle(cost=Decimal(2))
    with pytest.raises(HoldOver):
        held.settle(cost=Decimal(2))
    assert held.figures == ("17", "0", "3", "0")
    assert wrong(held.money) == []


def test_while_the_run_is_at_work_nothing_is_settled(m: Money) -> None:
    m.budget("20")
    run_id = m.dispatched("5")
    m.receive(run_id, [receipt(**BIG)])
    with pytest.raises(RunNotEnded):
        Held(m, run_id, run_id).settle(cost=Decimal(1))


@pytest.mark.parametrize("who", ["workspace_admin", "platform_admin", "operator", "requester", "service"])
def test_no_role_stands_for_the_grant_finance(held: Held, who: str) -> None:
    by = getattr(held.money.world, who)
    with pytest.raises(NotOverMoney):
        settle_hold(by, reservation_id=held.row.id, **WORDS)
    assert held.figures == ("15", "0", "1", "4")


def test_another_tenants_hold_is_not_there(held: Held) -> None:
    stranger = second_world(f"{held.money.world.tenant}-2")
    with pytest.raises(NotFound):
        settle_hold(stranger.finance, reservation_id=held.row.id, **WORDS)


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"reason": " "}, "/reason"),
        ({"evidence": ""}, "/evidence"),
        ({"evidence": "x" * 2001}, "/evidence"),
        ({"provider": "gateway", "cost": Decimal(1)}, "/name"),
        ({"provider": "gateway", "name": "big-1"}, "/cost"),
        ({"cost": Decimal(2_000_000)}, "/cost"),
    ],
)
def test_bad_input_is_told_by_its_place(held: Held, changes: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        held.settle(**changes)
    assert [fault.pointer for fault in refused.value.errors] == [pointer]
    assert held.figures == ("15", "0", "1", "4")


def test_a_hold_ends_by_its_age_and_the_usage_stays_unknown(
    m: Money, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(m, 14)
    held = holding(m, [receipt(**BIG)])
    closed = held.row.closed_at
    assert closed is not None
    assert held.row.hold_due_at == closed + timedelta(days=14)
    due = {"reservation_id": held.row.id, "due_at": closed + timedelta(days=14)}
    clock = watch(monkeypatch, closed + timedelta(days=14) - timedelta(microseconds=1))
    assert expire_hold(m.ctx, **due) is False
    clock.pass_(microseconds=1)
    assert expire_hold(m.ctx, **due) is True
    assert expire_hold(m.ctx, **due) is False
    assert (held.figures, held.usage()) == (("20", "0", "0", "0"), [("Uncertain", None)])
    assert held.row.hold_ended_by == m.ctx.actor.subject
    assert journal(m.ctx, held.row.id)[-1] == ("Settled", "Settled", "HoldExpired")
    assert wrong(m) == []


def test_the_schedule_frees_what_is_old_enough_and_nothing_else(held: Held, m: Money) -> None:
    assert HoldExpiryWorker().run_once(m.world.tenant).found == 0, "no policy, no end"
    says(m, 30)
    young = held.row.hold_due_at
    assert young is not None, "an open hold is dated by the new policy"
    assert young > datetime.now(UTC)
    assert HoldExpiryWorker().run_once(m.world.tenant).found == 0
    old(held, days=31)
    assert HoldExpiryWorker().run_once(m.world.tenant).repaired == 1
    assert held.figures == ("19", "0", "1", "0")
    assert HoldExpiryWorker().run_once(m.world.tenant).found == 0
    assert wrong(m) == []


def test_a_policy_that_says_nothing_any_more_lets_no_hold_end(held: Held, m: Money) -> None:
    says(m, 1)
    due = held.row.hold_due_at
    assert due is not None
    says(m, None)
    assert held.row.hold_due_at is None
    assert expire_hold(m.ctx, reservation_id=held.row.id, due_at=due) is False
    assert held.figures == ("15", "0", "1", "4")


def old(held: Held, *, days: int) -> None:
    """The run ended so many days ago, as the database has it, and its hold is dated anew."""
    with psycopg.connect(admin_url()) as db:
        db.execute("ALTER TABLE usage_reservation DISABLE TRIGGER pinned_columns")
        db.execute(
            "UPDATE usage_reservation SET closed_at = closed_at - make_interval(days => %s) WHERE id = %s",
            [days, held.row.id],
        )
        db.execute("ALTER TABLE usage_reservation ENABLE ALWAYS TRIGGER pinned_columns")
    date_holds(held.money.ctx)


def test_a_hold_that_came_back_from_a_restore_is_dated_by_the_policy_in_force(held: Held, m: Money) -> None:
    says(m, 30)
    with psycopg.connect(admin_url()) as db:
        db.execute("UPDATE usage_reservation SET hold_due_at = NULL WHERE id = %s", [held.row.id])
    left: list[str] = []
    assert restore.date_open_holds(left.append) >= 1
    row = held.row
    assert row.hold_due_at == row.closed_at + timedelta(days=30)
    assert left == []


def test_unknown_usage_that_comes_after_the_end_of_a_hold_is_held_anew_and_nothing_that_was_freed(
    held: Held,
) -> None:
    held.settle()
    held.money.receive(held.run_id, [costing("0.5")])
    assert held.figures == ("18.5", "0", "1.5", "0")
    held.money.receive(held.run_id, [receipt(**BIG)])
    assert held.figures == ("17.333334", "0", "1.5", "1.166666"), "one call of three, of what is left"
    assert wrong(held.money) == []
    held.settle()
    assert held.figures == ("18.5", "0", "1.5", "0")
    assert wrong(held.money) == []


def test_a_hold_that_follows_one_that_ended_by_its_age_is_as_old_as_its_newest_call(
    held: Held, m: Money
) -> None:
    says(m, 30)
    old(held, days=31)
    assert HoldExpiryWorker().run_once(m.world.tenant).repaired == 1
    m.receive(held.run_id, [receipt(**BIG)])
    for days in (30, 40):
        says(m, days)
        due = held.row.hold_due_at
        assert due is not None
        assert due > datetime.now(UTC) + timedelta(days=days - 1)
    assert HoldExpiryWorker().run_once(m.world.tenant).found == 0
    assert held.row.held > 0
    assert wrong(m) == []


def test_a_hold_that_is_locked_when_a_policy_comes_is_dated_after_it(held: Held, m: Money) -> None:
    adopt_platform_policy(m.ctx)
    with row_held(m.world.tenant, "usage_reservation", held.row.id, 5):
        says(m, 30)  # longer than the command tries by itself
    until = time.monotonic() + 20
    while held.row.hold_due_at is None and time.monotonic() < until:
        time.sleep(0.2)
        drain(Handlers(), m.world.tenant)
    closed = held.row.closed_at
    assert closed is not None
    assert held.row.hold_due_at == closed + timedelta(days=30)


@pytest.mark.parametrize("figure", [None, Decimal(2)])
def test_late_doubled_and_racing_ends_end_in_one_state(m: Money, figure: Decimal | None) -> None:
    """Two tabs of a person and the schedule at once: the money is freed, or booked, once."""
    says(m, 1)
    m.budget("500")
    for _ in range(6):
        run_id = m.dispatched("5")
        m.receive(run_id, [receipt(**BIG), receipt(**BIG)])
        m.settle(run_id)
        held = Held(m, run_id, run_id)
        old(held, days=3)
        due = held.row.hold_due_at
        assert due is not None
        age = partial(expire_hold, m.ctx, reservation_id=held.row.id, due_at=due)
        tab = partial(held.settle, cost=figure)
        met = race(age, tab, tab, partial(held.settle), age)
        assert set(refusals(met)) <= {"HoldOver"}
        row = held.row
        assert (row.held, row.hold_due_at) == (0, None)
        expected = [("Uncertain", None)] * 2 if figure is None else [("Confirmed", "1.000000")] * 2
        assert (held.usage(), row.spent) == (expected, figure or 0)
    assert wrong(m) == []


def test_over_http_a_hold_is_seen_and_ended(held: Held) -> None:
    m = held.money
    finance = Api.as_(m.world.finance)
    [item] = finance.get(f"/factory/reservations?runId={held.run_id}").json()["items"]
    assert (item["held"]["amount"], item["holdDueAt"], item["holdEndedAt"]) == ("4.000000", None, None)
    url = f"/factory/reservations/{item['reservationId']}/hold"
    assert finance.post(url, {"reason": "The bill came"}).status_code == 400
    money = {"amount": "2.500000", "currency": "USD"}
    told = finance.post(url, WORDS | {"cost": money}, Idempotency_Key="k").json()
    assert (told["held"]["amount"], told["spent"]["amount"]) == ("0.000000", "3.500000")
    assert finance.post(url, WORDS | {"cost": money}, Idempotency_Key="k").json() == told
    again = finance.post(url, WORDS | {"cost": money})
    assert (again.status_code, again.json()["type"].rsplit("/", 1)[-1]) == (409, "hold-over")
    assert Api.as_(m.world.workspace_admin).post(url, WORDS).status_code == 403


def test_in_the_console_a_hold_is_ended_with_a_figure_or_without_one(m: Money) -> None:
    held = holding(m, [receipt(**BIG), receipt(**BIG), receipt(**BIG | {"name": "small-2"})])
    pages = ("usage_reservation_change", "usage_hold")
    page, act = (reverse(f"admin:{name}", args=[held.row.id]) for name in pages)
    reader, finance = signed_in(m.world.observer), signed_in(m.world.finance)
    assert "5.00 USD are held for 3 calls of unknown cost, until a person ends it." in text(reader.get(page))
    assert act not in reader.get(page).content.decode()
    assert reader.get(act).status_code == 403
    assert act in finance.get(page).content.decode()
    asked = text(finance.get(act))
    assert "gateway/big-1" in asked
    assert "2 calls: 18,000 inputTokens" in asked
    refused = finance.post(act, {"cost": "1,5", "evidence": "INV-1", "reason": "The bill"})
    assert refused.status_code == 400
    sent = {"cost": "1.5", "name": "gateway\x1fbig-1", "evidence": "INV-1", "reason": "The bill"}
    assert "settled at this figure" in text(finance.post(act, sent, follow=True))
    assert held.figures == ("15", "0", "1.5", "3.5")
    told = text(finance.post(act, {"evidence": "A ticket", "reason": "Nobody knows"}, follow=True))
    assert "Nobody knows (A ticket). 1 call of unknown cost stay so." in told
    ledger = text(finance.get(reverse("admin:usage_budget_change", args=[held.budget])))
    assert "3.50 USD are not kept back any more" in ledger
    assert wrong(m) == []


def text(answer: Any) -> str:
    """What is read of a page."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())
