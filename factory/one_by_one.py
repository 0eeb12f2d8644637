"""Several commands at once are several commands: each its own transaction, its own outcome."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import structlog
from django.db import DatabaseError, InterfaceError, connection

from factory.errors import DomainError, NotTried, OutcomeUnknown

T = TypeVar("T")
R = TypeVar("R")

log = structlog.get_logger("factory.one_by_one")


def one_by_one(items: Iterable[T], act: Callable[[T], R]) -> Iterator[tuple[T, R | DomainError]]:
    """Each of them with what the act answered, or with how it was refused; no refusal stops the others.

    A database that goes away does: of the one that it went away under nobody knows whether it was done
    (`OutcomeUnknown`), and of those after it nothing is tried (`NotTried`). What was done before stays done,
    and is told.
    """
    away = False
    for item in items:
        found: R | DomainError
        if away:
            found = NotTried()
        else:
            try:
                found = act(item)
            except DomainError as refusal:
                found = refusal
            except (DatabaseError, InterfaceError):
                log.warning("one_of_several_unknown", exc_info=True)
                connection.close_if_unusable_or_obsolete()
                found, away = OutcomeUnknown(), True
        yield item, found
