"""Ask, at start and for probes, whether the schema is what this release's migrations make."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connections, transaction
from django.db.backends.utils import CursorWrapper

from factory.evidence.schema.catalogue import Catalogue, SchemaFact
from factory.evidence.schema.comparing import Comparison, Difference, compare

log = structlog.get_logger("factory.evidence.schema")

GOOD_FOR, BAD_FOR = 60.0, 5.0
"""Seconds for which a probe's answer is remembered: probes come often, and the catalogue is large."""
MOST_NAMED = 5
REMEDY = (
    "Run manage.py migrate of this release with the owner's URL. If that says the same, other migrations "
    "made this database or somebody changed it by hand: see The schema in docs/how-to/run-it-for-real.md."
)


class SchemaDiffers(ImproperlyConfigured):
    """The database is not what this release needs."""

    def __init__(self, differences: list[Difference]) -> None:
        super().__init__(f"The database is not what the migrations make: {named(differences)}. {REMEDY}")


def named(differences: list[Difference]) -> str:
    """Name the first differences, and count the rest."""
    first = "; ".join(str(each) for each in differences[:MOST_NAMED])
    rest = len(differences) - MOST_NAMED
    return f"{first}; and {rest} more" if rest > 0 else first


def compared(using: str = "default") -> Comparison:
    """Compare now, as the role of a connection: any role may read the catalogue."""
    with _cursor(using) as cursor:
        return compare(cursor)


def facts() -> list[SchemaFact]:
    """Return what the schema is made of now."""
    with _cursor("default") as cursor:
        return Catalogue(cursor).facts()


@contextmanager
def _cursor(using: str) -> Iterator[CursorWrapper]:
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        yield cursor


def require_schema() -> None:
    """Refuse to start on a database that lacks what this release needs or has what does harm.

    Raises `SchemaDiffers`. What differs besides is logged. A database that is away keeps nobody from
    starting: the process waits for it, and /readyz says so.
    """
    try:
        found = compared()
    except OperationalError:
        log.warning("schema_not_compared", reason="the database does not answer")
        return
    finally:
        _leave()
    if found.faults:
        log.error("schema_differs", faults=named(found.faults))
        raise SchemaDiffers(found.faults)
    if found.newer:
        log.warning("schema_of_a_newer_release", migrations=found.newer[:MOST_NAMED])
    elif found.differences:
        log.warning("schema_differs_harmlessly", differences=named(found.differences))


def _leave() -> None:
    """Leave no connection behind: a server may fork after this."""
    connection = connections["default"]
    connection.close()
    if connection.settings_dict["OPTIONS"].get("pool"):
        connection.close_pool()  # type: ignore[attr-defined]  # of PostgreSQL alone


_remembered: tuple[float, str] = (0.0, "")


def schema_state() -> str:
    """Return ok or what is wrong with the schema, for probes; one answer serves a minute, a bad one 5 s."""
    global _remembered
    until, state = _remembered
    if time.monotonic() >= until:
        faults = compared().faults
        state = f"not what the migrations make: {named(faults)}" if faults else "ok"
        _remembered = time.monotonic() + (BAD_FOR if faults else GOOD_FOR), state
    return state
