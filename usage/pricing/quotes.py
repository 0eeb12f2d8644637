"""Prices: what a document of prices may say, and what a call costs by it. Pure; it reads no table.

    {"currency": "USD", "providers": {"factory-tools": {
        "confirming": true, "prices": {"git-clone": {"seconds": "0.000020"}, "*": {"calls": "0.000100"}}}}}

`prices` goes from the name of a model or tool to the price of each unit; `*` stands for names without an
entry of their own. `confirming` says that no statement will ever come, so a known cost is final, and that a
cost which a receipt states itself stands.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from factory.kernel.errors import FieldError, InvalidInput
from usage.pricing import money
from usage.states import UsageState

DEFAULT_DOCUMENT = Path(__file__).with_name("pricing_default.yaml")
ANY_NAME = "*"


@dataclass(frozen=True, slots=True)
class Quote:
    """Say what a call costs. `cost` is None when the usage or a price is unknown, and `reason` says which."""

    state: UsageState
    cost: Decimal | None
    prices: Mapping[str, str]
    reason: str = ""


class PriceList:
    """The prices of one revision."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._providers: Mapping[str, Any] = document["providers"]

    def prices_of(self, provider: str, name: str) -> dict[str, Decimal] | None:
        """Return the price of each unit, or None when nobody set a price for this call."""
        names = self._providers.get(provider, {}).get("prices", {})
        units = names.get(name, names.get(ANY_NAME))
        return None if units is None else {unit: Decimal(price) for unit, price in units.items()}

    def confirms(self, provider: str) -> bool:
        """Return whether a known cost of this provider is final without a statement."""
        return bool(self._providers.get(provider, {}).get("confirming", False))


def quote(
    prices: PriceList | None,
    provider: str,
    name: str,
    quantities: Mapping[str, Decimal] | None,
    stated: Decimal | None,
) -> Quote:
    """Price one call: by the cost that the receipt states, where that stands, else by the list.

    A stated cost stands only from a provider that the list names as confirming, and never as 0: who means
    that a call is free publishes a price of 0.
    """
    confirming = bool(prices and prices.confirms(provider))
    if stated and confirming:
        return Quote(UsageState.CONFIRMED, stated, {})
    if quantities is None:
        return _unknown(f"The receipt does not say what the call used.{_ignored(provider, stated)}")
    units = prices.prices_of(provider, name) if prices else None
    if units is None:
        return _unknown(f"No price is known for {provider}/{name}.{_ignored(provider, stated)}")
    return _priced(UsageState.CONFIRMED if confirming else UsageState.ESTIMATED, units, quantities)


def _ignored(provider: str, stated: Decimal | None) -> str:
    """Return why a stated cost does not stand, as a sentence to add; empty where none was stated."""
    if stated is None:
        return ""
    if not stated:
        return " Its own cost of 0 does not stand: a call that is free has a price of 0."
    return f" Its own cost of {money.text_of(stated)} does not stand: {provider} is not named as confirming."


def _priced(known: UsageState, units: Mapping[str, Decimal], quantities: Mapping[str, Decimal]) -> Quote:
    unpriced = sorted(quantities.keys() - units.keys())
    if unpriced:
        return _unknown(f"No price is known for the unit {', '.join(unpriced)}.")
    missing = sorted(unit for unit, price in units.items() if price and unit not in quantities)
    if missing:
        return _unknown(f"The receipt does not say how many {', '.join(missing)} the call used.")
    amounts = [money.times(quantity, units[unit]) for unit, quantity in quantities.items()]
    cost = money.rounded(money.total(amounts))
    if cost >= money.CALL_LIMIT:
        return _unknown(f"No call is believed to cost {money.text_of(cost)}.")
    return Quote(known, cost, {unit: money.text_of(units[unit]) for unit in quantities})


def _unknown(reason: str) -> Quote:
    return Quote(UsageState.UNCERTAIN, None, {}, reason)


def checked(document: Any, at: str = "") -> dict[str, Any]:
    """Return the document in its canonical shape; refuses anything else with a pointer to each fault."""
    faults: list[FieldError] = []
    if not isinstance(document, Mapping) or set(document) != {"currency", "providers"}:
        raise _refused([FieldError(at, 'A price document has exactly "currency" and "providers".')])
    if document["currency"] != money.CURRENCY:
        faults.append(FieldError(f"{at}/currency", f"The currency is {money.CURRENCY}."))
    providers = _mapping(document["providers"], f"{at}/providers", faults)
    canonical = {
        key: _provider(value, f"{at}/providers/{_token(key)}", faults) for key, value in providers.items()
    }
    if faults:
        raise _refused(faults)
    return {"currency": money.CURRENCY, "providers": canonical}


def _provider(value: Any, pointer: str, faults: list[FieldError]) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not {"prices"} <= set(value) <= {"prices", "confirming"}:
        faults.append(FieldError(pointer, 'A provider has "prices" and may have "confirming".'))
        return {}
    confirming = value.get("confirming", False)
    if not isinstance(confirming, bool):
        faults.append(FieldError(f"{pointer}/confirming", "This is true or false."))
    names = _mapping(value["prices"], f"{pointer}/prices", faults)
    prices = {
        name: _units(units, f"{pointer}/prices/{_token(name)}", faults) for name, units in names.items()
    }
    return {"confirming": confirming, "prices": prices}


def _units(value: Any, pointer: str, faults: list[FieldError]) -> dict[str, str]:
    units: dict[str, str] = {}
    for unit, price in _mapping(value, pointer, faults).items():
        try:
            units[unit] = money.text_of(money.quantity_of(price, f"{pointer}/{_token(unit)}"))
        except InvalidInput as fault:
            faults.extend(fault.errors)
    return units


def _mapping(value: Any, pointer: str, faults: list[FieldError]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not value:
        faults.append(FieldError(pointer, "This is an object with at least one member."))
        return {}
    named = {key: item for key, item in value.items() if isinstance(key, str) and 0 < len(key) <= 255}
    if len(named) != len(value):
        faults.append(FieldError(pointer, "A name is text of 1 to 255 characters."))
    return named


def _token(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _refused(faults: list[FieldError]) -> InvalidInput:
    return InvalidInput("The price document is not valid.", errors=faults)


@cache
def default_document() -> dict[str, Any]:
    """Return the prices that come with the product: those of its own tools, and of nobody else."""
    return checked(yaml.safe_load(DEFAULT_DOCUMENT.read_text(encoding="utf-8")))
