"""Budget periods: calendar months in UTC, half-open `[start, end)`."""

import re
from datetime import UTC, date, datetime, time, timedelta

from factory.kernel.errors import FieldError, InvalidInput

NOTICE = timedelta(days=7)
"""So long before a month begins its budget is opened, or the lack of one is told."""
_MONTH = re.compile(r"(20\d\d)-(0[1-9]|1[0-2])", re.ASCII)


def month_of(at: datetime) -> date:
    """Return the first day of the month that an instant falls in, in UTC."""
    return at.astimezone(UTC).date().replace(day=1)


def next_month(start: date) -> date:
    """Return the first day of the month after the one that begins at `start`."""
    return (start + timedelta(days=31)).replace(day=1)


def begins_at(start: date) -> datetime:
    """Return the instant at which a month begins."""
    return datetime.combine(start, time(), UTC)


def label(start: date) -> str:
    """Return a month as people write it: `2026-11`."""
    return start.strftime("%Y-%m")


def parse_month(value: object, pointer: str) -> date:
    """Return the first day of a month written as `YYYY-MM`."""
    match = _MONTH.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        detail = "A period is a calendar month such as 2026-11."
        raise InvalidInput(detail, errors=[FieldError(pointer, detail)])
    return date(int(match[1]), int(match[2]), 1)
