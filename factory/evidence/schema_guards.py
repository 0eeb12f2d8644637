"""Does the schema stand as the migrations made it? (G): walls, triggers, roles, grants, constraints, tables.

All of these rules compare the catalogue with the committed lines beside the migrations, each the lines of
its kind (`factory.evidence.schema`).
"""

from collections.abc import Callable, Iterator
from typing import Any

from django.db.backends.utils import CursorWrapper

from factory.evidence.auditor import check
from factory.evidence.schema.comparing import compare

Rows = Iterator[tuple[Any, Any, Any]]
MAKING = ("grant CREATE on schema ", "grant CREATE on the database ")
KINDS = {
    "G1": ("table ", "view "),
    "G2": ("trigger ", "rule ", "event trigger "),
    "G3": ("role ", "setting ", *MAKING),
    "G4": ("policy ",),
    "G5": ("function ",),
    "G6": ("grant ", "publication "),
    "G7": ("constraint ", "unique index "),
    "G8": ("column ", "index ", "sequence "),
}
TITLES = {
    "G1": "Walls stand: every table has the row-level security and the owner that it was made with",
    "G2": "Triggers stand: evidence, pinned columns and journaled states refuse what they should",
    "G3": "No role may be, become or make more than it was made to",
    "G4": "Every table has exactly the policies that were made, and each says what it should",
    "G5": "The functions are those that the migrations made",
    "G6": "Every role, and PUBLIC, may do with each table, column, sequence and function what was granted",
    "G7": "Constraints stand: checks, uniqueness, and references that carry the tenant",
    "G8": "Columns, indexes and sequences are those that the migrations made",
}


class SchemaOfANewerRelease(RuntimeError):
    """A newer release has migrated the database: only its own auditor knows how the schema should be."""


def rule_of(key: str) -> str:
    """Return the code of the rule that a difference of this name breaks."""
    return next(code for code, kinds in KINDS.items() if key.startswith(kinds))


def _rule(code: str) -> Callable[[CursorWrapper], Rows]:
    def unlike(cursor: CursorWrapper) -> Rows:
        """Find what of a kind is missing, is otherwise, or was made by no migration."""
        found = compare(cursor)
        if found.newer:
            raise SchemaOfANewerRelease(f"{', '.join(found.newer)}: run verify of the release that has them.")
        yield from (("", each.key, each.fault) for each in found.differences if rule_of(each.key) == code)

    unlike.__module__ = __name__
    return unlike


for _code, _title in TITLES.items():
    check(_code, _title)(_rule(_code))
