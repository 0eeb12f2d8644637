"""Write down, outside the database, where every chain ends."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from factory.evidence.anchors.place import in_folder
from factory.evidence.anchors.taking import Contradicted, NotHandedOver, take


class Command(BaseCommand):
    help = (
        "Takes an anchor: a signed file of the heads of all hash chains. Exits 1, and writes none, when the "
        "database contradicts an earlier anchor. `verify` compares the database with them (A7)."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--anchors", type=Path, help="another folder than FACTORY_ANCHORS_DIR")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with in_folder(options["anchors"]):
                take(tell=self.stdout.write)
        except Contradicted as found:
            for each in found.findings:
                self.stderr.write(f"  {each.kind} {each.tenant} {each.subject}: {each.detail}")
            raise CommandError(
                "The database contradicts its anchors, so no new one was taken: it would cover up what "
                "happened. Look at what `manage.py verify` says, and after a restore run `manage.py recover`."
            ) from found
        except NotHandedOver as fault:
            raise CommandError(f"{fault}. It is given again with the next anchor.") from fault
