"""Write down what the code declares: event schemas and state diagrams."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from factory.evidence.descriptions import diagrams, event_schemas


class Command(BaseCommand):
    help = "Writes docs/events/*.json and docs/states/*.md from the code; --check only compares."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="exit 1 if the files are not up to date")

    def handle(self, *args: Any, **options: Any) -> None:
        docs = Path(settings.BASE_DIR) / "docs"
        wanted = {docs / "events" / name: text for name, text in event_schemas().items()}
        wanted |= {docs / "states" / name: text for name, text in diagrams().items()}
        present = {*(docs / "events").glob("*.json"), *(docs / "states").glob("*.md")}
        stale = [p for p, text in wanted.items() if not p.exists() or p.read_text() != text]
        surplus = sorted(present - set(wanted))
        if options["check"]:
            if stale or surplus:
                names = ", ".join(sorted(p.name for p in [*stale, *surplus]))
                raise CommandError(f"Not what the code says: {names}. Run manage.py describe.")
            return
        for path in stale:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path])
        for path in surplus:
            path.unlink()
        self.stdout.write(f"{len(wanted)} files, {len(stale)} written, {len(surplus)} removed")
