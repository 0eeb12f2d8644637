"""`manage.py prepare_demo`: tables, keys, and a demo tenant with its people. Safe to run again."""

import json
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from config.launching.world import make_world
from factory.embedded.system import EmbeddedError


class Command(BaseCommand):
    help = "Migrate, and make the demo tenant unless it is there. Prints JSON, a line for each step."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        self._tell(migrated="up to date")
        try:
            self._tell(world=make_world(timezone.now().date()))
        except EmbeddedError as error:
            raise CommandError(str(error)) from error

    def _tell(self, **found: Any) -> None:
        self.stdout.write(json.dumps(found))
        self.stdout.flush()
