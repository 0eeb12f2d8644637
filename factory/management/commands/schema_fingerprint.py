"""Compare the schema with what the migrations make, or write down what a fresh database has."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from factory.evidence.schema.expected import expected, written
from factory.evidence.schema.readiness import compared, facts


class Command(BaseCommand):
    help = (
        "Names everything in which the database differs from what this release's migrations make, each "
        "with the definition that it should have. Exits 1 if something is missing or otherwise."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--write", action="store_true", help="for `make schema`: write the files anew")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["write"]:
            self._write()
            return
        found = compared()
        for each in found.differences:
            self.stdout.write(str(each))
            if not each.is_extra:
                self.stdout.write(f"    as it should be: {expected()[each.key] or each.key}")
        for name in found.newer:
            self.stdout.write(f"{name} is of a newer release, whose processes judge what differs")
        self.stdout.write(f"{len(found.differences)} differences")
        if found.faults:
            raise SystemExit(1)

    def _write(self) -> None:
        wanted = written(facts())
        stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
        for path in stale:
            path.write_text(wanted[path])
        self.stdout.write(f"{len(wanted)} files, {len(stale)} written")
