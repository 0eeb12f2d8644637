"""What goes over the wire about money, and what is accepted."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from factory.api.serializers import (
    Choice,
    Identifier,
    JSONObject,
    Moment,
    QueryMoment,
    StrictSerializer,
    Text,
    Whole,
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
class Money(serializers.Field[Decimal, Any, dict[str, str], Any]):
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


class DayOrMoment(QueryMoment):
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
    amount = Money()
    available = Money()
    committed = Money()
    spent = Money()
    held = Money()
    version = Whole()
    recurs = serializers.BooleanField()
    createdBy = Text(source="created_by")
    createdAt = Moment(source="created_at")
    updatedAt = Moment(source="updated_at")


class NewBudgetBody(StrictSerializer):
    """A budget to create: over the token's own project, or over the whole tenant."""

    scope = Choice(choices=["project", "tenant"])
    period = Month()
    amount = Money()
    recurs = serializers.BooleanField(required=False)


class BudgetAmountBody(StrictSerializer):
    """What the budget shall be, and the version on which that was decided."""

    amount = Money()
    version = Whole()


class RecurrenceBody(StrictSerializer):
    """Whether the budget opens the next month by itself, and the version on which that was decided."""

    recurs = serializers.BooleanField()
    version = Whole()


class LedgerEntryBody(StrictSerializer):
    """One side of a movement; the entries of one `transactionId` sum to 0."""

    entryId = Identifier(source="id")
    transactionId = Identifier(source="transaction_id")
    sequence = Whole()
    account = Choice(choices=list(Account))
    amount = Money()
    balance = Money()
    movement = Choice(choices=list(Movement))
    reservationId = Identifier(source="reservation_id", allow_null=True)
    postedAt = Moment(source="posted_at")


class ReservationBody(StrictSerializer):
    """What is set aside for a run, or why nothing is."""

    reservationId = Identifier(source="id")
    runId = Identifier(source="run_id")
    projectId = Identifier(source="project_id")
    state = Choice(choices=list(ReservationState))
    amount = Money(allow_null=True)
    extended = Money()
    reason = Text(max_length=2000)
    spent = Money()
    held = Money()
    createdAt = Moment(source="created_at")
    expiresAt = Moment(source="expires_at", allow_null=True)
    dispatchedAt = Moment(source="dispatched_at", allow_null=True)
    closedAt = Moment(source="closed_at", allow_null=True)
    holdDueAt = Moment(source="hold_due_at", allow_null=True)
    holdEndedAt = Moment(source="hold_ended_at", allow_null=True)
    holdEndedBy = Text(source="hold_ended_by", allow_blank=True)


class HoldBody(StrictSerializer):
    """Why a hold ends, by which evidence, and what the usage cost in all, if anybody knows.

    Without `cost` the money is free again and the usage stays Uncertain. `provider` and `name` say of which
    model or tool the cost is, where there are several.
    """

    reason = Text(max_length=2000)
    evidence = Text(max_length=2000)
    cost = Money(required=False)
    provider = Text(required=False, max_length=200)
    name = Text(required=False, max_length=200)


class ReservationFilter(StrictSerializer):
    """Which reservations to list."""

    state = Choice(choices=list(ReservationState), required=False)
    runId = Identifier(source="run_id", required=False)


class PricingBody(StrictSerializer):
    """A revision of prices."""

    pricingRevisionId = Identifier(source="id")
    revision = Text(source="label")
    number = Whole()
    validFrom = Moment(source="valid_from")
    publishedBy = Text(source="published_by")
    publishedAt = Moment(source="published_at")
    documentHash = Text(source="document_hash")
    document = JSONObject()


class NewPricingBody(StrictSerializer):
    """Prices to publish: for each provider, name and unit; in force from `validFrom`, by default from now."""

    document = JSONObject()
    validFrom = Moment(source="valid_from", required=False, default=None, allow_null=True)


class UsageFilter(StrictSerializer):
    """The half-open time `[from, to)`, by default the present month, and what to group by."""

    groupBy = Choice(source="group_by", choices=list(GROUPS), required=False, default="day")

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), "from": self._edge("start"), "to": self._edge("end")}

    def _edge(self, source: str) -> DayOrMoment:
        return DayOrMoment(source=source, required=False, default=None)


class UsageGroupBody(StrictSerializer):
    """Usage under one key; `cost` is what is known of it, and `uncertain` counts what is not."""

    key = Text(allow_null=True)
    cost = Money()
    estimated = Money()
    confirmed = Money()
    records = Whole()
    uncertain = Whole()
