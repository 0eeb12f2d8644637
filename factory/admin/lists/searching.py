"""What a search may ask: for a million rows only what an index answers, for a few also parts of words."""

from typing import Any
from uuid import UUID

from django.contrib.admin.utils import get_fields_from_path
from django.db.models import Model, Q, QuerySet, UUIDField

from factory.admin.scope import as_uuid

MOST_CHARACTERS = 200
NEWEST = 2_000


def search(
    rows: QuerySet[Any], fields: tuple[str, ...], term: str, *, large: bool, recent: tuple[str, ...] = ()
) -> QuerySet[Any]:
    """The rows of which a field is the term, or, unless the list is large, has its words in it.

    Of a large one, the `NEWEST` rows are also looked through for words in the fields that `recent` names.
    """
    term = term.strip()[:MOST_CHARACTERS]
    if not term or "\x00" in term:
        return rows if not term else rows.none()
    key = as_uuid(term) if len(term) >= 32 else None
    if large or key is not None:
        asked = _is(rows.model, fields, term, key)
        return rows.filter(asked | Q(pk__in=_newest(rows, recent, term)) if recent and key is None else asked)
    found = rows
    for word in term.split()[:10]:
        found = found.filter(_has(rows.model, fields, word))
    return found


def _newest(rows: QuerySet[Any], fields: tuple[str, ...], term: str) -> list[Any]:
    """Keys of the newest rows that hold all the words. They are read first: an `OR` would read all rows."""
    words = [word.casefold() for word in term.split()[:10]]
    newest = rows.values_list("pk", *fields)[:NEWEST]
    return [
        key
        for key, *texts in newest
        if all(any(word in str(text).casefold() for text in texts) for word in words)
    ]


def _is(model: type[Model], fields: tuple[str, ...], term: str, key: UUID | None) -> Q:
    asked = Q(pk__in=[])
    for name in fields:
        if not _holds_keys(model, name):
            asked |= Q(**{name: term})
        elif key is not None:
            asked |= Q(**{name: key})
    return asked


def _has(model: type[Model], fields: tuple[str, ...], word: str) -> Q:
    asked = Q(pk__in=[])
    for name in fields:
        if not _holds_keys(model, name):
            asked |= Q(**{f"{name}__icontains": word})
    return asked


def _holds_keys(model: type[Model], name: str) -> bool:
    return isinstance(get_fields_from_path(model, name)[-1], UUIDField)
