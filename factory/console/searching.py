"""The search of the console: one box, and each app finds what is its own, within bounds."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from factory.console.scope import as_uuid
from factory.kernel.context import Context
from factory.kernel.tenancy import reading

SHOWN = 10
LONGEST = 200
SHORTEST_ENDING = 6


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing that was found. `exact` is what was named by its whole id: there is no other."""

    title: str
    url: str
    state: str = ""
    note: str = ""
    exact: bool = False


@dataclass(frozen=True, slots=True)
class SearchResults:
    """Hold what was found of one kind; `looked` says among what."""

    kind: str
    hits: tuple[Hit, ...]
    looked: str = ""


@dataclass(frozen=True, slots=True)
class Sought:
    """The words as they were typed, and what they could be."""

    text: str

    @property
    def id(self) -> UUID | None:
        """The words as a whole id."""
        return as_uuid(self.text)

    @property
    def ending(self) -> str:
        """The words as the end of an id, as pages show ids; empty if they are none."""
        text = self.text.lower()
        return text if re.fullmatch(rf"[0-9a-f-]{{{SHORTEST_ENDING},36}}", text) else ""

    @property
    def commit(self) -> str:
        """The words as a commit, or the beginning of one; empty if they are none."""
        text = self.text.lower()
        return text if re.fullmatch(r"[0-9a-f]{7,64}", text) else ""


def sought(text: str) -> Sought:
    """Return what somebody typed, without the dots that pages put before the end of an id."""
    return Sought(
        " ".join(text.replace("\x00", "").split())[:LONGEST].lstrip("…").removeprefix("...").strip()
    )


Find = Callable[[Context, Sought], SearchResults | None]
_finders: list[tuple[int, Find]] = []


def finder(order: int) -> Callable[[Find], Find]:
    """Declare how things of one kind are found. It is called inside a reading transaction; None is for who
    may not see them."""

    def declare(find: Find) -> Find:
        _finders.append((order, find))
        _finders.sort(key=lambda each: each[0])
        return find

    return declare


def search(ctx: Context, text: str) -> list[SearchResults]:
    """Everything of the place that the words could mean, by kind."""
    what = sought(text)
    if len(what.text) < 2:
        return []
    with reading(ctx):
        found = [find(ctx, what) for _, find in _finders]
    return [each for each in found if each is not None]


def only(found: Sequence[SearchResults]) -> Hit | None:
    """The one thing that was named by its whole id."""
    exact = [hit for each in found for hit in each.hits if hit.exact]
    return exact[0] if len(exact) == 1 else None
