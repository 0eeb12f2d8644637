"""Of a million rows a list asks only what an index answers: each filter, search and order of a large one."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.options import ModelAdmin
from django.contrib.admin.utils import get_fields_from_path
from django.db.models import Model, Q, UniqueConstraint

from factory.kernel.lifecycle import lifecycles
from factory.kernel.models.journal import OFTEN
from tests.console.test_pages import PAGES

LARGE = [(model, page) for model, page in PAGES if page.large]  # type: ignore[attr-defined]
IDS = [model._meta.label_lower for model, _ in LARGE]
CHOICES = {
    "delivery": ("handled_at", "streamed_at", "handle_set_aside_at", "stream_set_aside_at"),
    "to_state": ("entity",),
    "whose": ("state", "break_glass", "waiver"),
    "usage.reservation.hold": ("held", "closed_at"),
    "notifications.notification.state": ("set_aside_at", "sent_at", "dropped_at"),
}
"""Filters that are no column of their own name, and the columns that they ask about."""


def _conditions(asked: Q | None) -> Iterator[str]:
    for part in asked.children if asked else ():
        yield from _conditions(part) if isinstance(part, Q) else [str(part[0]).partition("__")[0]]


def _indexes(model: type[Model]) -> Iterator[tuple[list[str], set[str]]]:
    """The columns of each index, without the tenant, and those that its condition is about."""
    kinds = (*model._meta.indexes, *model._meta.constraints)
    unique = [one for one in kinds if isinstance(one, UniqueConstraint)]
    for one in (*model._meta.indexes, *unique):
        names = list(one.fields) or [e.name for e in getattr(one, "expressions", ()) if hasattr(e, "name")]
        columns = [name.lstrip("-") for name in names if name != "tenant_id"]
        yield [_column(name) for name in columns], {_column(n) for n in _conditions(one.condition)}
    yield [model._meta.pk.name], set()


def _column(name: str) -> str:
    return name.removesuffix("_id")


def _answered(model: type[Model], path: str) -> bool:
    field = get_fields_from_path(model, path)[-1]
    name = _column(field.name)
    return any(name in (columns or [""])[0] or name in about for columns, about in _indexes(field.model))


def _asked(page: ModelAdmin, model: type[Model]) -> Iterator[str]:
    for spec in page.list_filter:
        name: Any = spec if isinstance(spec, str) else getattr(spec, "parameter_name", "")
        yield from CHOICES.get(f"{model._meta.label_lower}.{name}", CHOICES.get(name, (name,)))
    yield from page.search_fields


@pytest.mark.parametrize(("model", "page"), LARGE, ids=IDS)
def test_an_index_answers_each_filter_and_search_of_a_large_list(
    model: type[Model], page: ModelAdmin
) -> None:
    unanswered = [path for path in _asked(page, model) if not _answered(model, path)]
    assert not unanswered, f"{model._meta.label} has no index for {unanswered}; see benchmarks/lists"


@pytest.mark.parametrize(("model", "page"), LARGE, ids=IDS)
def test_a_large_list_is_ordered_by_an_index_in_the_tenant_and_in_a_project(
    model: type[Model], page: ModelAdmin
) -> None:
    [first, *_] = [name.lstrip("-") for name in page.ordering or ()]
    whole = [columns for columns, about in _indexes(model) if not about]
    assert any(columns[:1] == [first] for columns in whole)
    if any(field.name in ("project", "project_id") for field in model._meta.fields):
        assert any(columns[:2] == ["project", first] for columns in whole), "A small project reads them all"


def test_what_is_said_to_change_often_are_kinds_of_the_house() -> None:
    assert set(OFTEN) <= set(lifecycles())
