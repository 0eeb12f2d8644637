"""The schema that this release's migrations make: a committed file beside the migrations of each app.

`make schema` writes them anew from a freshly migrated database. Each line is a fact; a conflict between two
branches is solved by writing them anew.
"""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from django.apps import apps

from factory.evidence.schema.catalogue import SchemaFact
from factory.kernel.app_config import BaseAppConfig

FILE = "schema.txt"
HEAD = "# Written by `make schema` from a freshly migrated database. Solve conflicts by writing it anew.\n"
REST = "factory"
"""Whose file holds what belongs to no app of ours: roles, the schema itself, tables of libraries."""


def files() -> dict[str, Path]:
    """Return the file of each installed app that has migrations of ours, by its label."""
    return {
        each.label: Path(each.path) / "migrations" / FILE
        for each in apps.get_app_configs()
        if isinstance(each, BaseAppConfig)
    }


@cache
def expected() -> dict[str, str]:
    """Return the value of each fact that should be, by its key."""
    found: dict[str, str] = {}
    for path in files().values():
        found |= dict(parsed(path.read_text())) if path.exists() else {}
    return found


def parsed(text: str) -> Iterable[tuple[str, str]]:
    """Return key and value of each line of a file."""
    for line in text.splitlines():
        if line and not line.startswith("#"):
            key, _, value = line.partition(": ")
            yield key, value


def written(facts: Iterable[SchemaFact]) -> dict[Path, str]:
    """Return what each app's file should hold, given the facts of a freshly migrated database."""
    ours = files()
    lines: dict[str, list[str]] = {label: [] for label in ours}
    for fact in facts:
        label = next((each for each in ours if fact.owner.startswith(f"{each}_")), REST)
        lines[label].append(fact.line)
    return {
        ours[label]: HEAD + "".join(f"{line}\n" for line in sorted(each)) for label, each in lines.items()
    }
