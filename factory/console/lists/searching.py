"""What a search may ask: for a million rows only what an index answers, for a few also parts of words."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.contrib.admin.utils import get_fields_from_path
from django.db.models import Model, Q, QuerySet, UUIDField, Value

from factory.console.lists.bounded_scan import AT_FIRST_MS, in_time
from factory.console.scope import as_uuid
from factory.kernel.newest import containing, ids_among

MOST_CHARACTERS = 200
NEWEST = 2_000


def search(
    rows: QuerySet[Any],
    fields: tuple[str, ...],
    term: str,
    *,
    large: bool,
    recent: tuple[str, ...] = (),
    newest: Sequence[QuerySet[Any]] = (),
    otherwise: Callable[[], None] = lambda: None,
) -> QuerySet[Any]:
    """The rows of which a field is the term, or, unless the list is large, has its words in it.

    Of a large one, the `NEWEST` are also looked through for words in the fields that `recent` names: those of
    the first of `newest`, or, where what else was chosen makes them hard to find, of the second, which
    `otherwise` says.
    """
    term = term.strip()[:MOST_CHARACTERS]
    if not term or "\x00" in term:
        return rows if not term else rows.none()
    key = as_uuid(term) if len(term) >= 32 else None
    if large or key is not None:
        asked = _is(rows.model, fields, term, key)
        if recent and key is None:
            asked |= Q(pk__in=_among_newest(newest, recent, term, otherwise))
        return rows.filter(asked)
    found = rows
    for word in term.split()[:10]:
        found = found.filter(_has(rows.model, fields, word))
    return found


def _among_newest(
    newest: Sequence[QuerySet[Any]], fields: tuple[str, ...], term: str, otherwise: Callable[[], None]
) -> list[Any]:
    chosen, every = newest
    found = in_time(AT_FIRST_MS, lambda: _newest(chosen, fields, term))
    if found is None:
        otherwise()
        return _newest(every, fields, term)
    return found


def _newest(rows: QuerySet[Any], fields: tuple[str, ...], term: str) -> list[Any]:
    """Keys of the newest rows that hold all the words."""
    words = dict(enumerate(term.split()[:10]))
    where = " AND ".join(
        "(" + " OR ".join(f"{field} ILIKE %(word{n})s" for field in fields) + ")" for n in words
    )
    sought = {f"word{n}": containing(word) for n, word in words.items()}
    return ids_among(rows, NEWEST, fields, where, sought, NEWEST)


def _is(model: type[Model], fields: tuple[str, ...], term: str, key: UUID | None) -> Q:
    """Look up what is sought in each field alone first: a field that holds it nowhere must not make the
    database read through a million rows of another filter to find none.
    """
    could = [name for name in fields if key is not None or not _holds_keys(model, name)]
    sought = {name: Q(**{name: key if _holds_keys(model, name) else term}) for name in could}
    return reduce(or_, (sought[name] for name in _holding(model, sought)), Q(pk__in=[]))


def _holding(model: type[Model], sought: Mapping[str, Q]) -> list[str]:
    """Those fields of which a row of the tenant holds what is sought: one look into an index for each."""
    looks = [
        model._default_manager.filter(each).order_by().values_list(Value(name), flat=True)[:1]
        for name, each in sought.items()
    ]
    return list(looks[0].union(*looks[1:], all=True)) if looks else []


def _has(model: type[Model], fields: tuple[str, ...], word: str) -> Q:
    asked = Q(pk__in=[])
    for name in fields:
        if not _holds_keys(model, name):
            asked |= Q(**{f"{name}__icontains": word})
    return asked


def _holds_keys(model: type[Model], name: str) -> bool:
    return isinstance(get_fields_from_path(model, name)[-1], UUIDField)
