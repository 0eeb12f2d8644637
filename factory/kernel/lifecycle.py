"""A state machine as data: the edges that exist, why they are taken, and what each one tells.

The FSM methods on the models are the machine that runs; this is its declaration. `record()` refuses
what is not declared, the auditor checks history against it, and the diagrams are drawn from it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

CREATION = "None"
"""What the journal writes as the state before the first one."""

_lifecycles: dict[str, "Lifecycle"] = {}


@dataclass(frozen=True, slots=True)
class Edge:
    """One permitted transition. `source` is "" for creation; source and target may be the same.

    `events` are the topics that every such transition emits, `optional` those that it may.
    """

    source: str
    target: str
    causes: tuple[str, ...]
    events: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    @property
    def before(self) -> str:
        """The source as the journal writes it."""
        return self.source or CREATION


class Lifecycle:
    """All edges of one kind of entity."""

    def __init__(self, entity: str, edges: Iterable[Edge]) -> None:
        self.entity = entity
        self.edges = tuple(edges)
        self._by_key = {(e.before, e.target, cause): e for e in self.edges for cause in e.causes}
        if len(self._by_key) != sum(len(e.causes) for e in self.edges):
            raise ValueError(f"{entity}: one cause leads along the same edge twice.")

    @property
    def states(self) -> frozenset[str]:
        return frozenset(e.target for e in self.edges)

    @property
    def terminal(self) -> frozenset[str]:
        """States that nothing leaves (a self-edge leaves nothing)."""
        return self.states - {e.source for e in self.edges if e.source != e.target}

    def edge(self, before: str, after: str, cause: str) -> Edge | None:
        """The declared edge for a transition, or None."""
        return self._by_key.get((before, after, cause))


def register_lifecycle(cycle: Lifecycle) -> None:
    """Make a lifecycle known to the auditor, the console and the diagrams."""
    if _lifecycles.setdefault(cycle.entity, cycle) is not cycle:
        raise ValueError(f"There is already a lifecycle of {cycle.entity}.")


def lifecycles() -> dict[str, Lifecycle]:
    """Every declared lifecycle by the name of its entity."""
    return dict(_lifecycles)
