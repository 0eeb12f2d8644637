"""Receipts become usage: strictly checked, priced by the revision in force, each one once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from threading import Barrier
from typing import Any

import pytest
from django.db import connections

from factory.kernel import clock
from factory.kernel.errors import InvalidInput
from factory.kernel.ids import uuid7
from factory.kernel.models import JournalEntry, OutboxEvent
from factory.kernel.tenancy import reading
from tests.usage.money_world import Money, costing, receipt
from usage import selectors
from usage.commands import publish_pricing_revision
from usage.models import UsageRecord
from usage.pricing.receipts import read

pytestmark = pytest.mark.slow


def records(m: Money, run_id: object) -> list[UsageRecord]:
    with reading(m.ctx):
        return list(UsageRecord.objects.filter(run_id=run_id).order_by("id"))


@pytest.mark.requirement("USG-06", "ATT-16")
def test_a_priced_call_is_confirmed_usage(m: Money) -> None:
    run_id, call = uuid7(), receipt()
    assert m.receive(run_id, [call]) == 1
    (usage,) = records(m, run_id)
    assert (usage.state, str(usage.cost)) == ("Confirmed", "0.000150")
    assert usage.quantities == {"calls": "1", "seconds": "2.5"}
    assert usage.prices == {"calls": "0.000100", "seconds": "0.000020"}
    with reading(m.ctx):
        (entry,) = JournalEntry.objects.filter(stream_id=run_id)
        (told,) = OutboxEvent.objects.filter(stream_id=run_id)
        used = selectors.usage_of_run(run_id)
    assert (entry.entity, entry.to_state, entry.cause) == ("usage-record", "Confirmed", "ReceiptRecorded")
    assert told.topic == "cost-usage.usage.v1.usage-recorded"
    assert (told.payload["receiptId"], told.payload["amountUsd"]) == (call["receiptId"], "0.000150")
    assert told.payload["pricingRevision"] == "p1"
    assert used == selectors.UsageView(Decimal("0.000150"), 0, 1)


@pytest.mark.requirement("USG-07")
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"quantities": None}, "does not say what"),
        ({"provider": "somewhere"}, "No price is known for somewhere/git-log"),
        ({"kind": "model", "provider": "gateway", "name": "unheard-of-1"}, "gateway/unheard-of-1"),
        ({"quantities": {"calls": 1, "seconds": 1, "tokens": 3}}, "unit tokens"),
        ({"quantities": {"calls": 1}}, "how many seconds"),
        ({"quantities": {"calls": 1, "seconds": 999999999999}}, "No call is believed"),
    ],
)
def test_what_nobody_knows_is_uncertain_and_never_zero(m: Money, changes: dict[str, Any], why: str) -> None:
    run_id = uuid7()
    m.receive(run_id, [receipt(**changes)])
    (usage,) = records(m, run_id)
    assert (usage.state, usage.cost) == ("Uncertain", None)
    assert why in usage.reason
    with reading(m.ctx):
        assert selectors.usage_of_run(run_id) == selectors.UsageView(Decimal(0), 1, 1)


MODEL = {"kind": "model", "provider": "gateway", "name": "big-1", "quantities": {"inputTokens": 1000}}
PRICED = {"gateway": {"prices": {"big-1": {"inputTokens": "0.000003"}, "free-1": {"inputTokens": 0}}}}


def stated(amount: str, **changes: Any) -> dict[str, Any]:
    """A call of a model of which the receipt itself says what it cost."""
    return receipt(**MODEL | {"cost": {"amount": amount, "currency": "USD"}} | changes)


@pytest.mark.parametrize("amount", ["0", "0.012"])
def test_a_cost_that_a_worker_states_for_a_provider_that_confirms_nothing_is_no_price(
    m: Money, amount: str
) -> None:
    run_id = uuid7()
    m.receive(run_id, [stated(amount), stated(amount, quantities=None)])
    assert [(usage.state, usage.cost) for usage in records(m, run_id)] == [("Uncertain", None)] * 2
    assert all("does not stand" in usage.reason for usage in records(m, run_id))


@pytest.mark.parametrize("amount", ["0", "0.000001", "99"])
def test_a_cost_that_a_worker_states_overrides_no_price_of_the_list(m: Money, amount: str) -> None:
    prices(m, PRICED)
    run_id = uuid7()
    m.receive(run_id, [stated(amount), stated(amount, name="free-1")])
    costs = [(usage.state, str(usage.cost)) for usage in records(m, run_id)]
    assert costs == [("Estimated", "0.003000"), ("Estimated", "0.000000")]


def test_a_stated_cost_stands_where_the_prices_name_its_provider_as_confirming_and_never_as_0(
    m: Money,
) -> None:
    prices(m, {"gateway": PRICED["gateway"] | {"confirming": True}})
    run_id = uuid7()
    calls = [stated("0.012"), stated("0"), stated("0", name="unheard-of"), stated("0", quantities=None)]
    m.receive(run_id, calls)
    told = [(usage.state, usage.cost and str(usage.cost)) for usage in records(m, run_id)]
    assert told == [("Confirmed", "0.012000"), ("Confirmed", "0.003000"), *[("Uncertain", None)] * 2]


def prices(m: Money, providers: dict[str, Any]) -> None:
    """Publish these prices, in force from now on."""
    publish_pricing_revision(m.ctx, document={"currency": "USD", "providers": providers})


def test_an_effect_is_evidence_and_no_usage_unless_it_cost_something(m: Money) -> None:
    run_id = uuid7()
    effect = receipt(kind="effect", quantities=None, approvalId=str(uuid7()), proposalHash="sha256:0")
    paid = costing("0.5", kind="effect")
    assert m.receive(run_id, [effect, paid]) == 1
    assert [usage.kind for usage in records(m, run_id)] == ["effect"]


def test_a_receipt_is_known_within_its_run_by_its_provider_and_its_id(m: Money) -> None:
    run_id, call = uuid7(), receipt()
    assert m.receive(run_id, [call, call]) == 1
    assert m.receive(run_id, [call, receipt(), call | {"provider": "elsewhere"}]) == 2
    assert m.receive(uuid7(), [call | {"quantities": {"calls": 9, "seconds": 9}}]) == 1
    assert len(records(m, run_id)) == 3


@pytest.mark.parametrize("same_run", [True, False])
def test_the_same_receipts_at_once_are_taken_once_in_each_run(m: Money, same_run: bool) -> None:
    m.budget("100")
    runs = [m.dispatched("4")] * 12 if same_run else [m.dispatched("4") for _ in range(12)]
    calls, barrier = [receipt() for _ in range(8)], Barrier(12)

    def one(index: int) -> int:
        try:
            barrier.wait(30)
            return m.receive(runs[index], calls if index % 2 else calls[::-1])
        finally:
            connections.close_all()

    each = 8 if same_run else 96
    with ThreadPoolExecutor(12) as pool:
        assert sum(pool.map(one, range(12))) == each
    with reading(m.ctx):
        ids = [call["receiptId"] for call in calls]
        assert UsageRecord.objects.filter(receipt_id__in=ids).count() == each


def pricing(seconds: str) -> dict[str, Any]:
    prices = {"*": {"seconds": seconds}}
    return {"currency": "USD", "providers": {"p": {"confirming": True, "prices": prices}}}


@pytest.mark.requirement("USG-06")
def test_a_call_is_priced_by_the_revision_in_force_when_it_happened(m: Money) -> None:
    with reading(m.ctx):
        start = clock.now()
    publish_pricing_revision(m.ctx, document=pricing("1"))
    publish_pricing_revision(m.ctx, document=pricing("2"), valid_from=start + timedelta(hours=2))
    publish_pricing_revision(m.ctx, document=pricing("3"), valid_from=start + timedelta(hours=1))

    def cost(hours: float, dispatched: float = 0.5, settled: float | None = 9) -> str:
        run_id = uuid7()
        call = receipt(
            provider="p",
            quantities={"seconds": 1},
            occurredAt=(start + timedelta(hours=hours)).isoformat(),
        )
        ends = None if settled is None else start + timedelta(hours=settled)
        m.receive(run_id, [call], dispatched_at=start + timedelta(hours=dispatched), settled_at=ends)
        return str(records(m, run_id)[0].cost)

    assert cost(0.6) == "1.000000"
    assert cost(1) == "3.000000"
    assert cost(1.999) == "3.000000"
    assert cost(2) == "2.000000"
    assert cost(-100) == "1.000000"  # not before its attempt was dispatched
    assert cost(5, settled=1.5) == "3.000000"  # nor after it was settled
    assert cost(5, dispatched=0.5, settled=None) == "1.000000"  # nor later than now


BAD: list[tuple[dict[str, Any], str]] = [
    ({"quantities": {"seconds": float("nan")}}, "/quantities/seconds"),
    ({"quantities": {"seconds": float("inf")}}, "/quantities/seconds"),
    ({"quantities": {"seconds": "1e400"}}, "/quantities/seconds"),
    ({"quantities": {"seconds": -1}}, "/quantities/seconds"),
    ({"quantities": {"seconds": int("9" * 30)}}, "/quantities/seconds"),
    ({"quantities": {"seconds": True}}, "/quantities/seconds"),
    ({"quantities": {"seconds": None}}, "/quantities/seconds"),
    ({"quantities": {}}, "/quantities"),
    ({"quantities": [1]}, "/quantities"),
    ({"quantities": {"no unit": 1}}, "/quantities"),
    ({"cost": {"amount": "-1", "currency": "USD"}}, "/cost/amount"),
    ({"cost": {"amount": "0.0000001", "currency": "USD"}}, "/cost/amount"),
    ({"cost": {"amount": "1000000", "currency": "USD"}}, "/cost"),
    ({"cost": {"amount": "1", "currency": "EUR"}}, "/cost/currency"),
    ({"cost": "1"}, "/cost"),
    ({"kind": "other"}, "/kind"),
    ({"kind": ["tool"]}, "/kind"),
    ({"receiptId": ""}, "/receiptId"),
    ({"receiptId": "x" * 256}, "/receiptId"),
    ({"provider": "a\x00b"}, "/provider"),
    ({"name": 7}, "/name"),
    ({"occurredAt": "yesterday"}, "/occurredAt"),
    ({"occurredAt": "2026-01-01T00:00:00"}, "/occurredAt"),
    ({"occurredAt": "0001-01-01T00:00:00+23:59"}, "/occurredAt"),
    ({"occurredAt": "9999-12-31T23:59:59-23:59"}, "/occurredAt"),
    ({"surprise": 1}, "/surprise"),
]


@pytest.mark.parametrize(("changes", "pointer"), BAD, ids=[str(changes) for changes, _ in BAD])
def test_says_what_is_wrong_with_a_receipt_and_where(changes: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        read(receipt(**changes), "/receipts/1")
    assert [fault.pointer for fault in refusal.value.errors] == [f"/receipts/1{pointer}"]


@pytest.mark.parametrize("value", ["text", None, 7, [], [receipt()]])
def test_refuses_what_is_no_receipt(value: Any) -> None:
    with pytest.raises(InvalidInput):
        read(value, "/receipts/0")


SAID = receipt(cost={"amount": "1.50", "currency": "USD"}, details={"a": 1, "b": [None]})


@pytest.mark.parametrize(
    "again",
    [
        {"quantities": {"seconds": "2.500", "calls": 1.0}},
        {"cost": {"amount": "1.500000", "currency": "USD"}},
        {
            "occurredAt": datetime.fromisoformat(SAID["occurredAt"])
            .astimezone(timezone(timedelta(hours=5)))
            .isoformat()
        },
        {"details": {"b": [None], "a": 1.0}},
        {"approvalId": None},
    ],
)
def test_what_says_the_same_is_the_same_content_however_it_is_written(again: dict[str, Any]) -> None:
    assert read(SAID | again, "").content == read(SAID, "").content


@pytest.mark.parametrize(
    "other",
    [
        {"quantities": None},
        {"quantities": {"calls": 1}},
        {"cost": None},
        {"cost": {"amount": "1.500001", "currency": "USD"}},
        {"occurredAt": "2026-01-01T00:00:00Z"},
        {"name": "git-show"},
        {"kind": "model"},
        {"details": {"a": 2, "b": [None]}},
        {"proposalHash": "sha256:0"},
    ],
)
def test_what_says_something_else_is_other_content(other: dict[str, Any]) -> None:
    assert read(SAID | other, "").content != read(SAID, "").content


@pytest.mark.slow
def test_many_of_the_smallest_amount_add_up_exactly(m: Money) -> None:
    own, run_id = m.budget("10"), m.dispatched("1")
    for _ in range(2):
        m.receive(run_id, [costing("0.000001") for _ in range(100)])
    m.settle(run_id)
    assert m.figures(own) == ("9.9998", "0", "0.0002", "0")


def test_the_clock_of_a_worker_decides_nothing(m: Money) -> None:
    run_id, ahead = uuid7(), datetime.now(UTC) + timedelta(days=400)
    m.receive(run_id, [receipt(occurredAt=ahead.isoformat())])
    (usage,) = records(m, run_id)
    assert usage.occurred_at == ahead
    assert usage.priced_at <= usage.recorded_at
