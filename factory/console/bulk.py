"""Several rows at once, on pages that can be read again: what was chosen, and what became of each.

Both are kept with the person's session under a short name, the newest few of either: no address holds a
hundred ids, a reload sends nothing again, and nobody else's session knows the name.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest
from django.utils.crypto import get_random_string

from factory.console.refusals import NotKept
from factory.kernel.errors import DomainError

KEPT, MOST_KEPT, LONGEST = "factory_several", 5, 300
FORGOTTEN = "This page was kept for you alone, until you signed out or had chosen others a few times."


@dataclass(frozen=True, slots=True)
class BulkResult:
    """Hold what became of one: its state, or how it was refused (`status`, 0 of what was done)."""

    key: UUID
    state: str
    told: str = ""
    status: int = 0

    @classmethod
    def refused(cls, key: UUID, state: str, refusal: DomainError) -> "BulkResult":
        return cls(key, state, refusal.in_words(), refusal.http_status)


@dataclass(frozen=True, slots=True)
class BulkResults:
    """All of them, in the order in which they were sent, and when that was."""

    at: datetime
    each: Sequence[BulkResult]

    @property
    def done(self) -> int:
        return sum(not one.status for one in self.each)


def keep_chosen(request: HttpRequest, act: str, keys: Iterable[UUID]) -> str:
    """Keep what an act was chosen for; the name by which `chosen` finds it."""
    return _keep(request.session, f"chosen {act}", [[str(key)] for key in keys])


def chosen(request: HttpRequest, act: str, name: str) -> list[UUID]:
    """Return what was chosen. Raises `NotKept` where this session has no such page, or not any more."""
    return [UUID(key) for (key,) in _kept(request, f"chosen {act}", name)["rows"]]


def keep_fates(request: HttpRequest, act: str, fates: Iterable[BulkResult]) -> str:
    """Keep what became of each; the name by which `fates_of` finds it."""
    rows = [[str(one.key), one.state, one.told[:LONGEST], one.status] for one in fates]
    session = type(request.session)(request.session.session_key)  # a hundred acts later, it may be another
    name = _keep(session, f"fates {act}", rows)
    session.save()
    return name


def fates_of(request: HttpRequest, act: str, name: str) -> BulkResults:
    """Return what became of each. Raises `NotKept` where this session has no such page, or not any more."""
    kept = _kept(request, f"fates {act}", name)
    each = [BulkResult(UUID(key), state, told, status) for key, state, told, status in kept["rows"]]
    return BulkResults(datetime.fromisoformat(kept["at"]), each)


def _keep(session: SessionBase, kind: str, rows: list[list[Any]]) -> str:
    name = get_random_string(10)
    page = {"kind": kind, "name": name, "at": datetime.now(UTC).isoformat(), "rows": rows}
    what = kind.partition(" ")[0]
    kept = session.get(KEPT, [])
    alike = [one for one in kept if one["kind"].startswith(what)]
    session[KEPT] = [*(one for one in kept if one not in alike), *[*alike, page][-MOST_KEPT:]]
    return name


def _kept(request: HttpRequest, kind: str, name: str) -> dict[str, Any]:
    for page in request.session.get(KEPT, []):
        if (page["kind"], page["name"]) == (kind, name):
            return dict(page)
    raise NotKept(FORGOTTEN)
