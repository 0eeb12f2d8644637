"""Columns of money."""

from typing import Any

from django.db import models


def money_field(**options: Any) -> "models.DecimalField[Any, Any]":
    """Return an exact amount of USD: numeric(18,6)."""
    return models.DecimalField(max_digits=18, decimal_places=6, **options)
