"""What goes over the wire about money, and what is accepted."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from factory.api.serializers import (
    Identifier,
    JSONObject,
    QueryTimeField,
    StrictSerializer,
    TextField,
    TimeField,
    Whole,
    WordField,
)
from factory.kernel.errors import InvalidInput
from usage.pricing import money
from usage.pricing.periods import label, parse_month
from usage.selectors import GROUPS
from usage.states import Account, Movement, ReservationState

MONEY_SCHEMA = {
    "type": "object",
    "required": ["amount", "currency"],
    "additionalProperties": False,
    "properties": {
        "amount": {"type": "string", "pattern": r"^-?\d{1,12}(\.\d{1,6})?$", "examples": ["12.000000"]},
        "currency": {"enum": [money.CURRENCY]},
    },
}


@extend_schema_field(MONEY_SCHEMA)
class MoneyField(serializers.Field[Decimal, Any, dict[str, str], Any]):
    """`{"amount": "12.000000", "currency": "USD"}`."""

    def to_internal_value(self, data: Any) -> Decimal:
        try:
            return money.money_of(data, "")
        except InvalidInput as fault:
            (error,) = fault.errors
            member = error.pointer.lstrip("/")
            raise serializers.ValidationError(
                {member: [error.detail]} if member else [error.detail]
            ) from None

    def to_representation(self, value: Decimal) -> dict[str, str]:
        return money.wire_of(value)


@extend_schema_field({"type": "string", "pattern": r"^20\d\d-(0[1-9]|1[0-2])$", "examples": ["2026-11"]})
class Month(serializers.Field[date, Any, str, Any]):
    """A calendar month in UTC."""

    def to_internal_value(self, data: Any) -> date:
        try:
            return parse_month(data, "")
        except InvalidInput as fault:
            raise serializers.ValidationError(fault.errors[0].detail) from None

    def to_representation(self, value: date) -> str:
        return label(value)


class DayOrTimeField(QueryTimeField):
    """A time, or a day that stands for its beginning in UTC."""

    def to_internal_value(self, value: Any) -> datetime:
        try:
            return datetime.combine(date.fromisoformat(value), time(), UTC)
        except (TypeError, ValueError):
            return super().to_internal_value(value)


class BudgetBody(StrictSerializer):
    """A budget and where its money is; one without `projectId` is over the whole tenant."""

    budgetId = Identifier(source="id")
    projectId = Identifier(source="project_id", allow_null=True)
    period = Month(source="period_start")
    periodStart = serializers.DateField(source="period_start")
    periodEnd = serializers.DateField(source="period_end")
    amount = MoneyField()
    available = MoneyField()
    committed = MoneyField()
    spent = MoneyField()
    held = MoneyField()
    version = Whole()
    recurs = serializers.BooleanField()
    createdBy = TextField(source="created_by")
    createdAt = TimeField(source="created_at")
    updatedAt = TimeField(source="updated_at")


class NewBudgetBody(StrictSerializer):
    """A budget to create: over the token's own project, or over the whole tenant."""

    scope = WordField(choices=["project", "tenant"])
    period = Month()
    amount = MoneyField()
    recurs = serializers.BooleanField(required=False)


class BudgetAmountBody(StrictSerializer):
    """Say what the budget shall be, and the version on which that was decided."""

    amount = MoneyField()
    version = Whole()


class RecurrenceBody(StrictSerializer):
    """Say whether the budget opens the next month by itself, and the version on which that was decided."""

    recurs = serializers.BooleanField()
    version = Whole()


class LedgerEntryBody(StrictSerializer):
    """One side of a movement; the entries of one `transactionId` sum to 0."""

    entryId = Identifier(source="id")
    transactionId = Identifier(source="transaction_id")
    sequence = Whole()
    account = WordField(choices=list(Account))
    amount = MoneyField()
    balance = MoneyField()
    movement = WordField(choices=list(Movement))
    reservationId = Identifier(source="reservation_id", allow_null=True)
    postedAt = TimeField(source="posted_at")


class ReservationBody(StrictSerializer):
    """Show what is set aside for a run, or why nothing is."""

    reservationId = Identifier(source="id")
    runId = Identifier(source="run_id")
    projectId = Identifier(source="project_id")
    state = WordField(choices=list(ReservationState))
    amount = MoneyField(allow_null=True)
    extended = MoneyField()
    reason = TextField(max_length=2000)
    spent = MoneyField()
    held = MoneyField()
    createdAt = TimeField(source="created_at")
    expiresAt = TimeField(source="expires_at", allow_null=True)
    dispatchedAt = TimeField(source="dispatched_at", allow_null=True)
    closedAt = TimeField(source="closed_at", allow_null=True)
    holdDueAt = TimeField(source="hold_due_at", allow_null=True)
    holdEndedAt = TimeField(source="hold_ended_at", allow_null=True)
    holdEndedBy = TextField(source="hold_ended_by", allow_blank=True)


class HoldBody(StrictSerializer):
    """Say why a hold ends, by which evidence, and what the usage cost in all, if anybody knows.

    Without `cost` the money is free again and the usage stays Uncertain. `provider` and `name` say of which
    model or tool the cost is, where there are several.
    """

    reason = TextField(max_length=2000)
    evidence = TextField(max_length=2000)
    cost = MoneyField(required=False)
    provider = TextField(required=False, max_length=200)
    name = TextField(required=False, max_length=200)


class ReservationFilter(StrictSerializer):
    """Choose the reservations to list."""

    state = WordField(choices=list(ReservationState), required=False)
    runId = Identifier(source="run_id", required=False)


class PricingBody(StrictSerializer):
    """A revision of prices."""

    pricingRevisionId = Identifier(source="id")
    revision = TextField(source="label")
    number = Whole()
    validFrom = TimeField(source="valid_from")
    publishedBy = TextField(source="published_by")
    publishedAt = TimeField(source="published_at")
    documentHash = TextField(source="document_hash")
    document = JSONObject()


class NewPricingBody(StrictSerializer):
    """Prices to publish: for each provider, name and unit; in force from `validFrom`, by default from now."""

    document = JSONObject()
    validFrom = TimeField(source="valid_from", required=False, default=None, allow_null=True)


class UsageFilter(StrictSerializer):
    """The half-open time `[from, to)`, by default the present month, and what to group by."""

    groupBy = WordField(source="group_by", choices=list(GROUPS), required=False, default="day")

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), "from": self._edge("start"), "to": self._edge("end")}

    def _edge(self, source: str) -> DayOrTimeField:
        return DayOrTimeField(source=source, required=False, default=None)


class UsageGroupBody(StrictSerializer):
    """Usage under one key; `cost` is what is known of it, and `uncertain` counts what is not."""

    key = TextField(allow_null=True)
    cost = MoneyField()
    estimated = MoneyField()
    confirmed = MoneyField()
    records = Whole()
    uncertain = Whole()
