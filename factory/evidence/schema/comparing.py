"""Compare the schema that stands with the one that this release's migrations make."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.apps import apps
from django.db.migrations.loader import MigrationLoader

from factory.evidence.schema.catalogue import Catalogue, SchemaFact
from factory.evidence.schema.expected import expected

MOST_OF_A_VALUE = 200
UNKNOWN = "no migration of this release makes it"
NEWEST_TESTED = 18
"""The newest major release of PostgreSQL whose spelling of definitions is known; a later one may differ."""
MORE_DOES_HARM = ("policy ", "rule ", "trigger ", "constraint ", "unique index ", "role ", "grant ")
"""Kinds of which one too many opens a wall, or refuses or changes what this release writes."""
SPELLED = ("view ", "column ", "index ", "unique index ", "constraint ", "policy ", "trigger ", "rule ")
"""Kinds whose definition the server spells out."""
NOT_AS_SPELLED = (", NOT VALID", ", NOT ENFORCED")


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as the migrations make it: `wanted` and `found` are None where there is none."""

    key: str
    wanted: str | None
    found: str | None
    is_of_another: bool = False

    @property
    def is_extra(self) -> bool:
        """Tell whether it is more than there should be."""
        return self.wanted is None

    @property
    def is_harmless_extra(self) -> bool:
        """Tell whether nothing that runs needs it to be away: it opens no wall, and refuses and changes
        nothing of ours."""
        return self.is_extra and (self.is_of_another or not self.key.startswith(MORE_DOES_HARM))

    @property
    def is_of_spelling(self) -> bool:
        """Tell whether it may be the same, spelled otherwise by another release of the server."""
        if self.wanted is None or self.found is None or not self.key.startswith(SPELLED):
            return False
        if self.key.startswith("trigger ") and self.wanted.split(",")[0] != self.found.split(",")[0]:
            return False
        return not self.found.endswith(NOT_AS_SPELLED)

    @property
    def is_of_old_rows(self) -> bool:
        """Tell whether it is a CHECK that new rows obey, while some from before it may not: these are for a
        person to mend, and nothing that runs needs them to be mended."""
        check = self.wanted is not None and self.wanted.startswith("CHECK ")
        return check and self.found == f"{self.wanted} NOT VALID"

    @property
    def fault(self) -> str:
        """Say what is wrong with it, for behind its name."""
        if self.is_of_old_rows:
            return "was never checked for the rows that are older: mend what breaks it, then migrate again"
        if self.found is None:
            return "is missing"
        if self.wanted is None:
            return f"is there, and {UNKNOWN}"
        return f"is “{_short(self.found)}” and should be “{_short(self.wanted)}”"

    def __str__(self) -> str:
        return f"{self.key} {self.fault}"


def _short(value: str) -> str:
    return value if len(value) <= MOST_OF_A_VALUE else value[: MOST_OF_A_VALUE - 1] + "…"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Say how the schema stands: what differs, and which migrations of a newer release have been applied."""

    differences: list[Difference] = field(default_factory=list)
    newer: list[str] = field(default_factory=list)
    server: int = NEWEST_TESTED

    @property
    def faults(self) -> list[Difference]:
        """Return what keeps this release from its work: what is missing, is otherwise than it must be, or
        is one too many of a kind that does harm.

        Named, and no fault, are other columns, indexes and tables, rows from before a CHECK, what somebody
        has set for a role otherwise than `provision` (a longer time-out), and what a server newer than any
        that was tested spells otherwise. Where a newer release has migrated the database already (it expands
        first, so that this one can go on), what differs is for that release to judge.
        """
        return [] if self.newer else [each for each in self.differences if self._is_fault(each)]

    def _is_fault(self, each: Difference) -> bool:
        is_only_spelled = self.server > NEWEST_TESTED and each.is_of_spelling
        is_set = each.key.startswith("setting ")
        return not (each.is_harmless_extra or each.is_of_old_rows or is_only_spelled or is_set)


def compare(cursor: Any) -> Comparison:
    """Compare the database of a cursor, inside a transaction, with what this release's migrations make."""
    wanted, facts = expected(), Catalogue(cursor).facts()
    found = {fact.key: fact.value for fact in facts}
    of_others = {fact.key for fact in facts if _is_of_another(fact, wanted, found)}
    differences = [
        Difference(key, wanted.get(key), found.get(key), key in of_others)
        for key in sorted(wanted.keys() | found.keys())
        if not _same(wanted.get(key), found.get(key))
    ]
    cursor.execute("SELECT current_setting('server_version_num')::int / 10000")
    [server] = cursor.fetchone()
    return Comparison(differences, list(_newer(cursor)), server)


def _is_of_another(fact: SchemaFact, wanted: dict[str, str], found: dict[str, str]) -> bool:
    """Tell whether a fact is about a table that no migration makes, in which nothing of ours is, or is a
    right to call a function that none makes, which may do no more than its caller."""
    table, (right, _, called) = f"table {fact.owner}", fact.key.rpartition(" to ")[0].partition(" on ")
    if right == "grant EXECUTE" and called in found and called not in wanted:
        return "WITH ITS OWNER'S RIGHTS" not in found[called]
    return table in found and table not in wanted


_CASTS = re.compile(r"::(?:character varying(?:\(\d+\))?|text)(?:\[\])?")
_ALONE = re.compile(r"(?<!\w)\(('(?:[^']|'')*'|\"?\w+\"?|ARRAY\[[^\[\]]*\])\)")


def _same(wanted: str | None, found: str | None) -> bool:
    """Tell whether two definitions say the same: after a dump and a restore casts are written elsewhere."""
    return wanted == found or (wanted is not None and found is not None and _bare(wanted) == _bare(found))


def _bare(value: str) -> str:
    """Return a definition without casts between texts, and without parentheses around a single word."""
    bare, before = _CASTS.sub("", value), ""
    while bare != before:
        bare, before = _ALONE.sub(r"\1", bare), bare
    return bare


def _newer(cursor: Any) -> Iterator[str]:
    """Find the migrations that have been applied to apps of this release, and that it does not know."""
    # A restore without its grants leaves a table that nobody may read: then what is missing is what matters.
    cursor.execute("SELECT has_table_privilege(to_regclass('public.django_migrations'), 'SELECT')")
    if not cursor.fetchone()[0]:
        return
    cursor.execute("SELECT app, name FROM public.django_migrations ORDER BY 1, 2")
    known, labels = _known(), {each.label for each in apps.get_app_configs()}
    for app, name in cursor.fetchall():
        if app in labels and (app, name) not in known:
            yield f"{app}.{name}"


@cache
def _known() -> frozenset[tuple[str, str]]:
    loader = MigrationLoader(None, ignore_no_migrations=True)
    replaced = {old for each in loader.disk_migrations.values() for old in each.replaces}
    return frozenset({*loader.disk_migrations, *replaced})
