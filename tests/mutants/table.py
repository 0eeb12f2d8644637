"""The table of mutants (table.txt): for each requirement that matters most, how it is broken."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("table.txt")


class Mutant(NamedTuple):
    """One way to break a requirement: what stands in a file once, and what takes its place."""

    id: str
    file: str
    text: str
    instead: str


def mutants() -> Iterator[Mutant]:
    """Yield the entries of the table; raise a `ValueError` at a line that belongs to none."""
    lines = [line for line in FILE.read_text().splitlines() if not line.startswith("#")]
    for block in "\n".join(lines).strip().split("\n\n"):
        head, *rest = block.strip().splitlines()
        strange = [line for line in rest if line[:2] not in ("- ", "+ ", "-", "+")]
        if strange or len(head.split()) != 2:
            raise ValueError(f"No entry of the table, its requirement and file first: {head} {strange}")
        requirement, file = head.split()
        text, instead = ("\n".join(line[2:] for line in rest if line[0] == sign) for sign in "-+")
        yield Mutant(requirement, file, text, instead)


MUTANTS = tuple(mutants())
