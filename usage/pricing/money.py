"""Exact money: `Decimal`, six places, half-up, the same in Python as in PostgreSQL's numeric(18,6).

A figure that cannot be held exactly is refused with a pointer to it, never bent into one that can.
"""

import re
from collections.abc import Iterable, Mapping
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

from factory.kernel.errors import FieldError, InvalidInput

CURRENCY = "USD"
ZERO = Decimal("0.000000")
QUANTUM = Decimal("0.000001")
LIMIT = Decimal("1000000000000")
"""numeric(18,6) has twelve digits before the point."""

CALL_LIMIT = Decimal("1000000")
"""No single call costs this much. It keeps one forged receipt from bringing a budget's sums to overflow."""

_TEXT = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")
_QUANTITY_DIGITS = 18
_QUANTITY_PLACES = 40  # a float of 17 digits may begin many places behind the point
_PRECISION = 80  # far above 18 + 18 digits, so that a product is exact before its one rounding


def rounded(value: Decimal) -> Decimal:
    """Half-up to six places, as `round(value, 6)` does in SQL."""
    with localcontext(prec=_PRECISION):
        return value.quantize(QUANTUM, rounding=ROUND_HALF_UP)


def times(quantity: Decimal, price: Decimal) -> Decimal:
    """Return an exact product, not yet rounded."""
    with localcontext(prec=_PRECISION):
        return quantity * price


def total(values: Iterable[Decimal]) -> Decimal:
    """Return an exact sum."""
    with localcontext(prec=_PRECISION):
        return sum(values, ZERO)


def amount_of(value: Any, pointer: str) -> Decimal:
    """Return an amount of USD from a number or its decimal text: not negative, at most six places."""
    number = _decimal(value, pointer)
    if number >= LIMIT:
        raise _refuse(pointer, f"An amount is below {LIMIT:,}.")
    if number != rounded(number):
        raise _refuse(pointer, "An amount has at most six decimal places.")
    return rounded(number)


def money_of(value: Any, pointer: str) -> Decimal:
    """Return the amount of `{"amount": "12.000000", "currency": "USD"}`."""
    if not isinstance(value, Mapping) or set(value) != {"amount", "currency"}:
        raise _refuse(pointer, 'Money is an object of exactly "amount" and "currency".')
    if value["currency"] != CURRENCY:
        raise _refuse(f"{pointer}/currency", f"The currency is {CURRENCY}.")
    if not isinstance(value["amount"], str):
        raise _refuse(f"{pointer}/amount", 'An amount of money is written as text, such as "12.000000".')
    return amount_of(value["amount"], f"{pointer}/amount")


def quantity_of(value: Any, pointer: str) -> Decimal:
    """Return a quantity: not negative, at most 18 digits, so that each float of 17 digits passes."""
    number = _decimal(value, pointer)
    digits, exponent = len(number.as_tuple().digits), int(number.as_tuple().exponent)
    if number >= LIMIT or digits > _QUANTITY_DIGITS or exponent < -_QUANTITY_PLACES:
        raise _refuse(pointer, f"A quantity is below {LIMIT:,} and has at most {_QUANTITY_DIGITS} digits.")
    return number


def text_of(value: Decimal) -> str:
    """Return the plain decimal text of a number, never with an exponent."""
    return format(value, "f")


def wire_of(value: Decimal) -> dict[str, str]:
    """Money as it goes over the wire."""
    return {"amount": text_of(rounded(value)), "currency": CURRENCY}


def _decimal(value: Any, pointer: str) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise _refuse(pointer, "This is not a number.")
    if isinstance(value, str) and not _TEXT.fullmatch(value):
        raise _refuse(pointer, "This is not a plain decimal number.")
    number = Decimal(repr(value) if isinstance(value, float) else value)
    if not number.is_finite():
        raise _refuse(pointer, "This is not a finite number.")
    if number < 0:
        raise _refuse(pointer, "This must not be negative.")
    return abs(number)  # a negative zero is zero


def _refuse(pointer: str, detail: str) -> InvalidInput:
    return InvalidInput(f"{pointer or '/'}: {detail}", errors=[FieldError(pointer, detail)])
