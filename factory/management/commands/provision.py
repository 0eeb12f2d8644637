"""Make the roles and the database on a server of one's own."""

import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from factory.embedded.provision import provision
from factory.embedded.system import EmbeddedError


class Command(BaseCommand):
    help = (
        "Makes the control plane's roles and its database on a PostgreSQL server, and prints their URLs as "
        "environment variables. What is there already stays. The administrator's URL is read from "
        "FACTORY_ADMIN_DATABASE_URL, so that it stands in no list of processes."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--database", default="factory", help="the database's name (factory)")
        parser.add_argument("--secrets", type=Path, help="where the generated passwords are kept (mode 0600)")

    def handle(self, *args: Any, **options: Any) -> None:
        admin_url = os.environ.get("FACTORY_ADMIN_DATABASE_URL", "")
        if not admin_url:
            raise CommandError("Set FACTORY_ADMIN_DATABASE_URL to the URL of a role that may make roles.")
        secrets = options["secrets"] or Path(settings.HOME) / "secrets"
        try:
            urls = provision(
                admin_url, options["database"], secrets=secrets, prefix=settings.FACTORY_ROLE_PREFIX
            )
        except EmbeddedError as fault:
            raise CommandError(str(fault)) from fault
        for name, url in urls.environment().items():
            self.stdout.write(f"{name}={url}")
