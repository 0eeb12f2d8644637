"""Pages by key: a page begins behind the last row that was seen, so that no row is counted or passed over."""

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Model, Q
from django.utils.encoding import force_str


def beyond(key: Sequence[str], values: Sequence[Any], *, ascending: bool, including: bool = False) -> Q:
    """The rows after `values` in the order of `key`, or from there on; the first bound alone lets an index
    start there."""
    past, up_to = ("gt", "gte") if ascending else ("lt", "lte")
    strictly = Q(**{f"{key[-1]}__{up_to if including else past}": values[-1]})
    for name, value in list(zip(key, values, strict=True))[-2::-1]:
        strictly = Q(**{f"{name}__{past}": value}) | (Q(**{name: value}) & strictly)
    return Q(**{f"{key[0]}__{up_to}": values[0]}) & strictly


def place_of(row: Model, key: Sequence[str]) -> list[str]:
    """Return where a row stands, as text."""
    return [force_str(row._meta.get_field(name).value_to_string(row)) for name in key]  # type: ignore[union-attr]


def values_of(model: type[Model], key: Sequence[str], texts: Sequence[str]) -> list[Any]:
    """A place as values. Raises `ValueError` where the texts are none."""
    try:
        found = [
            model._meta.get_field(name).to_python(text)  # type: ignore[union-attr]
            for name, text in zip(key, texts, strict=True)
        ]
    except (ValidationError, TypeError, OverflowError) as fault:
        raise ValueError("Not a place in this list.") from fault
    if any(value in (None, "") for value in found):
        raise ValueError("Not a place in this list.")
    return found
