"""Check that the schema is as the migrations made it (G): tables, policies, triggers, roles, grants and more.

One comparison of the catalogue with the committed lines beside the migrations serves all of these rules, each
of which has the lines of its kind (`factory.evidence.schema`).
"""

from collections.abc import Iterator

from django.db.backends.utils import CursorWrapper

from factory.evidence.auditor import Violation, checks
from factory.evidence.schema.comparing import compare

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
    "G1": "Row-level security stands: every table has the security and the owner that it was made with",
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


@checks(TITLES)
def schema_stands(cursor: CursorWrapper) -> Iterator[Violation]:
    """Find what is missing, is otherwise, or was made by no migration, in one reading of the catalogue."""
    comparison = compare(cursor)
    if comparison.newer:
        raise SchemaOfANewerRelease(
            f"{', '.join(comparison.newer)}: run verify of the release that has them."
        )
    for difference in comparison.differences:
        yield Violation(rule_of(difference.key), "", difference.key, difference.fault)
