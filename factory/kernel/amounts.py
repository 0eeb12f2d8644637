"""Amounts of money for reading: one rule of rounding, wherever a sentence or a column holds one."""

from decimal import ROUND_HALF_UP, Decimal

CENT = Decimal("0.01")


def usd(amount: Decimal | None) -> str:
    """An amount for reading: two places, or more when that would hide it."""
    if amount is None:
        return "not known"
    return f"{number(amount)} USD"


def cost(known: Decimal, uncertain: int) -> str:
    """A cost for reading; of `uncertain` calls nobody knows what they cost, which is not nothing."""
    if not uncertain:
        return usd(known)
    return f"at least {usd(known)}" if known else usd(None)


def number(amount: Decimal) -> str:
    """Return an amount without its currency, for a column that names it; half a cent is a cent, as in the
    ledger."""
    fine = amount == 0 or abs(amount) >= CENT
    return f"{amount.quantize(CENT if fine else CENT / 10_000, ROUND_HALF_UP):f}"
