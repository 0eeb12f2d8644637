"""Receipts as a worker reports them, checked strictly. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from factory.kernel.errors import FieldError, InvalidInput, ValueNotKept
from factory.kernel.hashing import digest, refuse_unkept
from usage.pricing import money
from usage.states import ReceiptKind

MOST_UNITS = 20
NOT_SAID = "not said"
_REQUIRED = frozenset({"receiptId", "kind", "provider", "name", "quantities", "occurredAt"})
_MEMBERS = _REQUIRED | {"cost", "approvalId", "proposalHash", "details"}
_ID = re.compile(r"[\x21-\x7e]{1,255}")
_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,200}")
_UNIT = re.compile(r"[a-z][A-Za-z0-9]{0,49}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ParsedReceipt:
    receipt_id: str
    kind: ReceiptKind
    provider: str
    name: str
    quantities: Mapping[str, Decimal] | None
    cost: Decimal | None
    occurred_at: datetime
    content: str

    @property
    def identity(self) -> tuple[str, str]:
        """Return what it is known by within its run: its provider, and its id there."""
        return self.provider, self.receipt_id

    @property
    def is_usage(self) -> bool:
        """Return whether it costs: an effect is evidence, and usage only if it says that it was paid for."""
        return self.kind != ReceiptKind.EFFECT or self.quantities is not None or self.cost is not None


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A call of which only a receipt tells that was refused: what it cost, if anything, nobody knows.

    It is known by the row that keeps that receipt, under an id that no receipt can have.
    """

    row_id: UUID
    said_kind: str
    said_provider: str
    said_name: str
    reason: str

    @property
    def receipt_id(self) -> str:
        return f"refused {self.row_id}"

    @property
    def kind(self) -> ReceiptKind:
        """Return its kind; of one that says none, that of calls which cost most."""
        return ReceiptKind(self.said_kind) if self.said_kind in set(ReceiptKind) else ReceiptKind.MODEL

    @property
    def provider(self) -> str:
        return self.said_provider if _NAME.fullmatch(self.said_provider) else NOT_SAID

    @property
    def name(self) -> str:
        return self.said_name if _NAME.fullmatch(self.said_name) else NOT_SAID


def read(value: Any, at: str) -> ParsedReceipt:
    """Return one receipt as it was reported, or raise `InvalidInput` with a pointer to every fault."""
    if not isinstance(value, Mapping):
        raise _invalid([FieldError(at, "A receipt is an object.")])
    faults = [FieldError(f"{at}/{name}", "This is missing.") for name in sorted(_REQUIRED - value.keys())]
    faults += [
        FieldError(f"{at}/{name}", "There is no such member.")
        for name in sorted(map(str, value.keys() - _MEMBERS))
    ]
    if faults:
        raise _invalid(faults)
    _refuse_unkept(value, at)
    receipt = ParsedReceipt(
        receipt_id=_text(value["receiptId"], _ID, f"{at}/receiptId"),
        kind=_kind(value["kind"], f"{at}/kind"),
        provider=_text(value["provider"], _NAME, f"{at}/provider"),
        name=_text(value["name"], _NAME, f"{at}/name"),
        quantities=_quantities(value["quantities"], f"{at}/quantities"),
        cost=_cost(value.get("cost"), f"{at}/cost"),
        occurred_at=_instant(value["occurredAt"], f"{at}/occurredAt"),
        content="",
    )
    try:
        return replace(receipt, content=_content(receipt, value))
    except InvalidInput as fault:
        raise _invalid([FieldError(at, fault.detail)]) from fault


def _content(receipt: ParsedReceipt, value: Mapping[str, Any]) -> str:
    """Return the hash of what a receipt says: two that say the same have the same, however it is written.

    Numbers count by their value and times by their instant; what is left out is null.
    """
    units, cost = receipt.quantities, receipt.cost
    content: dict[str, Any] = {
        name: getattr(receipt, name) for name in ("receipt_id", "kind", "provider", "name")
    }
    content["quantities"] = units and {unit: f"{number.normalize():f}" for unit, number in units.items()}
    content["cost"] = None if cost is None else money.text_of(cost)
    content["occurredAt"] = receipt.occurred_at.isoformat(timespec="microseconds")
    content |= {name: value.get(name) or None for name in ("approvalId", "proposalHash", "details")}
    return digest(content)


def _refuse_unkept(value: Mapping[str, Any], at: str) -> None:
    """Refuse numbers and texts that the database would not give back: a receipt is kept whole, as it came."""
    try:
        refuse_unkept(value, at)
    except ValueNotKept as fault:
        raise _invalid(list(fault.errors)) from fault


def _text(value: Any, pattern: re.Pattern[str], pointer: str) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise _invalid([FieldError(pointer, "This is not text of the expected form.")])
    return value


def _kind(value: Any, pointer: str) -> ReceiptKind:
    if not isinstance(value, str) or value not in set(ReceiptKind):
        raise _invalid([FieldError(pointer, f"This is one of {', '.join(ReceiptKind)}.")])
    return ReceiptKind(value)


def _quantities(value: Any, pointer: str) -> dict[str, Decimal] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not 0 < len(value) <= MOST_UNITS:
        raise _invalid([FieldError(pointer, f"This is null, or an object of 1 to {MOST_UNITS} units.")])
    for unit in value:
        _text(unit, _UNIT, pointer)
    return {unit: money.quantity_of(number, f"{pointer}/{unit}") for unit, number in value.items()}


def _cost(value: Any, pointer: str) -> Decimal | None:
    if value is None:
        return None
    cost = money.money_of(value, pointer)
    if cost >= money.CALL_LIMIT:
        raise _invalid([FieldError(pointer, f"No call costs {money.text_of(money.CALL_LIMIT)} or more.")])
    return cost


def _instant(value: Any, pointer: str) -> datetime:
    try:
        at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        at = None
    fault = _invalid([FieldError(pointer, "This is an RFC 3339 time with its offset.")])
    if at is None or at.tzinfo is None:
        raise fault
    try:
        return at.astimezone(UTC)
    except OverflowError:  # its offset leads out of the calendar, and no database could give it back
        raise fault from None


def _invalid(faults: list[FieldError]) -> InvalidInput:
    return InvalidInput("A receipt is not valid: " + "; ".join(f.pointer for f in faults[:5]), errors=faults)
