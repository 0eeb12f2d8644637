"""Keyset pages: a cursor names the last row seen, so that rows inserted meanwhile move nothing."""

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.core import signing
from django.db.models import Model, QuerySet
from rest_framework.request import Request

from factory.kernel import clock
from factory.kernel.errors import FieldError, InvalidInput
from factory.kernel.hashing import digest
from factory.kernel.keyset import beyond, place_of, values_of

DEFAULT_LIMIT, MAX_LIMIT = 50, 200
Row = TypeVar("Row", bound=Model)


def page(
    rows: QuerySet[Row],
    request: Request,
    *,
    key: Sequence[str] = ("created_at", "id"),
    render: Callable[[Row], Any],
    oldest_first: bool = False,
) -> dict[str, Any]:
    """One page of rows, newest first unless told otherwise; called inside a reading transaction.

    `key` must be unique together and never change for a row, or a walk could miss or repeat it.
    """
    limit = limit_of(request)
    sealed = request.query_params.get("cursor")
    if sealed:
        rows = rows.filter(beyond(key, _open(request, rows.model, key, sealed), ascending=oldest_first))
    ordering = [name if oldest_first else f"-{name}" for name in key]
    fetched = list(rows.order_by(*ordering)[: limit + 1])
    more = len(fetched) > limit
    items = fetched[:limit]
    return {
        "items": [render(row) for row in items],
        "next": _seal(request, key, items[-1]) if more else None,
        "asOf": clock.now(),
    }


def limit_of(request: Request) -> int:
    raw = request.query_params.get("limit", str(DEFAULT_LIMIT))
    if not (raw.isascii() and raw.isdecimal() and len(raw) <= 4 and 1 <= int(raw) <= MAX_LIMIT):
        fault = FieldError("/limit", f"A whole number from 1 to {MAX_LIMIT}.")
        raise InvalidInput("The limit is out of range.", errors=[fault])
    return int(raw)


def _list_of(request: Request) -> str:
    """Return what a cursor is good for: this list, with these filters, in this scope."""
    filters = sorted((k, v) for k, v in request.query_params.items() if k not in ("cursor", "limit"))
    ctx = getattr(request, "context", None)
    scope = [ctx.tenant_id, str(ctx.project_id)] if ctx is not None else []
    return digest([request.path, [list(pair) for pair in filters], scope])


def _seal(request: Request, key: Sequence[str], row: Model) -> str:
    return signing.dumps(place_of(row, key), salt=_list_of(request), compress=True)


def _open(request: Request, model: type[Model], key: Sequence[str], sealed: str) -> list[Any]:
    try:
        return values_of(model, key, signing.loads(sealed, salt=_list_of(request)))
    except (signing.BadSignature, ValueError, TypeError, json.JSONDecodeError) as fault:
        error = FieldError("/cursor", "Not a cursor of this list.")
        raise InvalidInput("The cursor is not good for this list.", errors=[error]) from fault
