"""Arithmetic: the same in Python and in PostgreSQL, and strict about what it accepts."""

from decimal import Decimal

import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st

from factory.kernel.errors import InvalidInput
from usage.pricing import money

QUANTITIES = st.decimals(min_value=0, max_value=10**9, allow_nan=False, allow_infinity=False, places=9)
PRICES = st.decimals(min_value=0, max_value=1000, allow_nan=False, allow_infinity=False, places=9)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(QUANTITIES, PRICES), min_size=1, max_size=8))
def test_python_and_sql_round_alike(parts: list[tuple[Decimal, Decimal]]) -> None:
    here = money.rounded(money.total(money.times(q, p) for q, p in parts))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT round(sum(q * p), 6) FROM unnest(%s::numeric[], %s::numeric[]) AS part(q, p)",
            [[q for q, _ in parts], [p for _, p in parts]],
        )
        assert cursor.fetchone()[0] == here


@settings(max_examples=200, deadline=None)
@given(st.integers(min_value=0, max_value=10**15))
def test_a_tie_rounds_away_from_zero_in_both(halves: int) -> None:
    tie = Decimal(2 * halves + 1) / Decimal(2_000_000)
    with connection.cursor() as cursor:
        cursor.execute("SELECT round(%s::numeric, 6)", [tie])
        there = cursor.fetchone()[0]
    assert money.rounded(tie) == there == tie + Decimal("0.0000005")


def test_a_million_of_the_smallest_amount_is_exactly_one() -> None:
    assert money.total(money.QUANTUM for _ in range(10**6)) == Decimal(1)
    with connection.cursor() as cursor:
        cursor.execute("SELECT sum(0.000001::numeric(18,6)) FROM generate_series(1, 1000000)")
        assert cursor.fetchone()[0] == Decimal(1)


BAD_AMOUNTS = [
    "NaN", "sNaN", "Infinity", "-1", "1e400", "9" * 30, "0.1234567", "1000000000000", "", "1,000", "0x10",
    " ", float("nan"), float("inf"), -0.5, 10**30, True, None, [], {}, "٣", "1_000", "1e2",
]  # fmt: skip


@pytest.mark.parametrize("value", BAD_AMOUNTS, ids=repr)
def test_refuses_what_is_no_amount_and_points_at_it(value: object) -> None:
    with pytest.raises(InvalidInput) as refusal:
        money.amount_of(value, "/limits/maxCostUsd")
    assert refusal.value.errors[0].pointer == "/limits/maxCostUsd"


@pytest.mark.parametrize(
    ("value", "amount"),
    [("12", "12.000000"), (0.1, "0.100000"), (7.0, "7.000000"), (0, "0.000000"), ("-0", "0.000000")],
)
def test_takes_amounts_exactly(value: object, amount: str) -> None:
    assert str(money.amount_of(value, "")) == amount


@pytest.mark.parametrize(
    "value",
    [
        12,
        "12.000000",
        {"amount": 12, "currency": "USD"},
        {"amount": "12.000000", "currency": "EUR"},
        {"amount": "12.000000"},
        {"amount": "12.000000", "currency": "USD", "note": ""},
    ],
    ids=repr,
)
def test_money_on_the_wire_is_text_with_its_currency(value: object) -> None:
    with pytest.raises(InvalidInput):
        money.money_of(value, "/amount")


@given(st.floats(min_value=1e-9, max_value=1e9, allow_nan=False))
def test_every_honest_measurement_passes_as_it_is(value: float) -> None:
    assert money.quantity_of(value, "") == Decimal(repr(value))
    assert Decimal(money.text_of(money.quantity_of(value, ""))) == Decimal(repr(value))
