"""Strict input: fields of one JSON type each, and no member that nobody asked for.

Serializers name their fields as the wire does (camelCase) and give `source=` in snake_case.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.core.validators import RegexValidator
from django.utils.dateparse import parse_datetime
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail
from rest_framework.request import Request

from factory.api.problems import field_errors
from factory.kernel.errors import InvalidInput

PAGING = frozenset({"limit", "cursor"})
Faults = dict[str, list[ErrorDetail]]


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses unknown members, each with a pointer to it."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        faults: Faults = {}
        if isinstance(data, Mapping):
            unknown = [name for name in data if name not in self.fields]
            faults = {str(name): [ErrorDetail("There is no such member.", "unknown")] for name in unknown}
            faults |= self.faults_between(data)
        try:
            value: dict[str, Any] = super().to_internal_value(data)
        except serializers.ValidationError as fault:
            detail = fault.detail if isinstance(fault.detail, dict) else {"non_field_errors": fault.detail}
            raise serializers.ValidationError({**faults, **detail}) from fault
        if faults:
            raise serializers.ValidationError(faults)
        return value

    def faults_between(self, data: Mapping[str, Any]) -> Faults:
        """Return the faults that no member has by itself; they are told together with those of members."""
        return {}

    @classmethod
    def parse(cls, data: Any, **context: Any) -> dict[str, Any]:
        """The validated values of some input, or `InvalidInput` that points at each fault."""
        serializer = cls(data=data, context=context)
        if not serializer.is_valid():
            raise InvalidInput("The input is not valid.", errors=list(field_errors(serializer.errors)))
        values: dict[str, Any] = serializer.validated_data
        return values

    @classmethod
    def parse_query(cls, request: Request) -> dict[str, Any]:
        """The query's parameters: known ones, each once. Those of paging belong to `page`."""
        given = request.query_params
        repeated = [name for name in given if len(given.getlist(name)) > 1]
        if repeated:
            raise InvalidInput(f"The parameter {repeated[0][:80]} is there more than once.")
        return cls.parse({name: given[name] for name in given if name not in PAGING})


class TextField(serializers.CharField):
    """A JSON string, exactly as sent: neither trimmed nor made from a number."""

    def __init__(self, *, max_length: int = 255, **options: Any) -> None:
        options.setdefault("trim_whitespace", False)
        super().__init__(max_length=max_length, **options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class PatternField(TextField):
    """A JSON string of one form; `words` say of which."""

    def __init__(self, pattern: str, words: str, **options: Any) -> None:
        super().__init__(**options)
        self.validators.append(RegexValidator(pattern, words, "invalid"))


class Whole(serializers.IntegerField):
    """A JSON integer within a column's range."""

    def __init__(self, *, min_value: int = 0, max_value: int = 2**53 - 1, **options: Any) -> None:
        super().__init__(min_value=min_value, max_value=max_value, **options)

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return super().to_internal_value(data)


class AmountField(serializers.DecimalField):
    """A plain JSON number of money, to six places; taken as written and never as a binary fraction."""

    def __init__(self, *, max_digits: int = 18, decimal_places: int = 6, **options: Any) -> None:
        options.setdefault("min_value", Decimal(0))
        super().__init__(max_digits=max_digits, decimal_places=decimal_places, **options)

    def to_internal_value(self, data: Any) -> Decimal:
        if isinstance(data, bool) or not isinstance(data, int | float | Decimal):
            self.fail("invalid")
        return super().to_internal_value(repr(data) if isinstance(data, float) else data)


class Flag(serializers.BooleanField):
    """true or false, and no word for them."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Identifier(serializers.UUIDField):
    """A UUID as a string in its usual form."""

    def to_internal_value(self, data: Any) -> UUID:
        if not isinstance(data, str) or len(data) != 36:
            self.fail("invalid", value=data)
        return super().to_internal_value(data)


class TimeField(serializers.DateTimeField):
    """An RFC 3339 time with its offset."""

    def to_internal_value(self, value: Any) -> datetime:
        parsed = None
        if isinstance(value, str) and len(value) <= 40:
            with suppress(ValueError):
                parsed = parse_datetime(value)
        if parsed is None or parsed.tzinfo is None:
            self.fail("invalid", format="RFC 3339 with an offset")
        try:
            return parsed.astimezone(UTC)
        except OverflowError:  # its offset leads out of the calendar
            self.fail("invalid", format="RFC 3339 with an offset")


class WordField(serializers.ChoiceField):
    """One of the words."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            self.fail("invalid_choice", input=type(data).__name__)
        return super().to_internal_value(data)


@extend_schema_field({"type": "object", "additionalProperties": True})
class JSONObject(serializers.JSONField):
    """A JSON object whose members are the caller's own affair."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise serializers.ValidationError("A JSON object is expected.", "invalid")
        return data


class QueryTimeField(TimeField):
    """A time in a query, where the + of an offset may have become a space."""

    def to_internal_value(self, value: Any) -> datetime:
        return super().to_internal_value(value.replace(" ", "+") if isinstance(value, str) else value)


class InUseBody(StrictSerializer):
    """Count what rests on it now: what taking it out of use would reach."""

    openRuns = Whole()
    heldAttempts = Whole()
