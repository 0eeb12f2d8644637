"""What a page says that its own app cannot know: the apps above add their parts to it.

The page of a project stands far below runs and money, and yet it is where one looks for both.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

from factory.console.dashboard import Card, Figure
from factory.kernel.context import Context
from factory.kernel.permissions import table

Kind = Literal["project"]


@dataclass(frozen=True, slots=True)
class Missing:
    """Hold what is not there yet, what therefore does not happen, and, for who may, where it is put right.

    `stops` says that no run can start without it, whatever else there is.
    """

    words: str
    label: str = ""
    url: str = ""
    stops: bool = field(default=False, kw_only=True)


Part = Figure | Card | Missing
Fill = Callable[[Context, UUID, datetime], Sequence[Part]]

_fills: dict[str, list[tuple[int, Fill]]] = {}


def part_of(kind: Kind, order: int) -> Callable[[Fill], Fill]:
    """Declare parts of a thing's page: figures and what is missing stand together, cards by themselves. They
    are read in the page's transaction, bounded, and are none for who may not see them."""

    def declare(fill: Fill) -> Fill:
        _fills.setdefault(kind, []).append((order, fill))
        _fills[kind].sort(key=lambda each: each[0])
        return fill

    return declare


def parts_of(
    kind: Kind, ctx: Context, key: UUID, at: datetime
) -> tuple[list[Figure], list[Card], list[Missing]]:
    """All figures, all cards, and all that is missing, of a thing's page, for this reader."""
    found = [part for _, fill in _fills.get(kind, ()) for part in fill(ctx, key, at)]
    return (
        [part for part in found if isinstance(part, Figure)],
        [part for part in found if isinstance(part, Card)],
        [part for part in found if isinstance(part, Missing)],
    )


@dataclass(frozen=True, slots=True)
class Ability:
    """Something that people can do in a project, and what opens it: one of the roles or of the grants."""

    words: str
    roles: frozenset[str]
    grants: frozenset[str] = frozenset()
    note: str = ""
    needed: bool = False
    """Whether no run gets anywhere in a project where nobody can do it."""
    everywhere: bool = False
    """Whether a role of one project opens it only to who holds it in each; one of the whole tenant does."""
    own: bool = False
    """Whether only a role of one's own opens it, and none that is lent."""
    widely: str = ""
    """What it is where the role or grant is held in the whole tenant, if that is more."""
    only_widely: bool = False
    """Whether nothing that is held in one project alone opens it."""


_abilities: list[tuple[int, Ability]] = []


def able(
    order: int,
    words: str,
    *,
    by: str = "",
    roles: Iterable[str] = (),
    grants: Iterable[str] = (),
    note: str = "",
    needed: bool = False,
    everywhere: bool = False,
    own: bool = False,
    widely: str = "",
    only_widely: bool = False,
) -> None:
    """Declare an ability: `by` names the operation whose roles in the permission table open it, `roles` are
    those of a command that judges them itself."""
    known = (table[by].roles or frozenset()) if by else frozenset()
    opened = known | frozenset(map(str, roles)), frozenset(map(str, grants))
    ability = Ability(words, *opened, note, needed, everywhere, own, widely, only_widely)
    _abilities.append((order, ability))
    _abilities.sort(key=lambda each: each[0])


def abilities() -> list[Ability]:
    """All of them, in their order."""
    return [ability for _, ability in _abilities]
