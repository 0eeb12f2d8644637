"""What every page of money has: who sees it, and how it speaks of runs."""

from typing import Any, TypeVar

from django.db import models
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from factory.console.base import BaseAdmin
from factory.console.links import names_of
from factory.console.lists.pages import BaseList
from factory.console.show import link, seen, short
from usage.permissions import sees_money

M = TypeVar("M", bound=models.Model)


class MoneyAdmin(BaseAdmin[M]):
    """Figures of a project are for everybody in it; those of the whole tenant for who decides over them."""

    def has_view_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return super().has_view_permission(request, obj) and sees_money(request.context)  # type: ignore[attr-defined]


def run_url(run_id: Any) -> str:
    """The page of a run, which stands in an app above this one."""
    return f"/admin/runs/run/{run_id}/change/"


def run_link(run_id: Any, name: str = "") -> SafeString:
    """Return the way to a run by its workflow's name, where that is known, and the end of its id."""
    return link(run_url(run_id), format_html("{} {}", seen(name), short(run_id)) if name else short(run_id))


class OfRuns(BaseList):
    """A list whose rows carry the names of their runs, read with one query for all of them."""

    @staticmethod
    def carry(request: HttpRequest, rows: list[Any]) -> None:
        named = names_of("run", [row.run_id for row in rows])
        for row in rows:
            row.run_name = named.get(row.run_id, "")
