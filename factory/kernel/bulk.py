"""Several commands at once are several commands: each its own transaction, its own outcome."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from factory.kernel.bulkhead import Bulkhead
from factory.kernel.errors import DomainError, ItemFailed, NotTried, OutcomeUnknown

T = TypeVar("T")
R = TypeVar("R")


def one_by_one(
    items: Iterable[T], act: Callable[[T], R], *, key: Callable[[T], object]
) -> Iterator[tuple[T, R | DomainError]]:
    """Each of them with what the act answered, or with how it was refused; no refusal stops the others.

    Nor does a fault (`ItemFailed`): it is logged under the item's `key`. A database that goes away does stop
    them: of the one that it went away under nobody knows whether it was done (`OutcomeUnknown`), and of those
    after it nothing is tried (`NotTried`). What was done before stays done, and is told.
    """
    alone = Bulkhead("one_by_one")
    for item in items:
        found: R | DomainError = NotTried() if alone.away else ItemFailed()
        if not alone.away:
            with alone.item(key(item)):
                found = _answer(act, item)
            if alone.away:
                found = OutcomeUnknown()
        yield item, found


def _answer(act: Callable[[T], R], item: T) -> R | DomainError:
    try:
        return act(item)
    except DomainError as refusal:
        return refusal
