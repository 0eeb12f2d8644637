"""`migrate`, as the role that owns the tables: the application's own role may not change them."""

from typing import Any

from django.core.management.base import CommandParser
from django.core.management.commands.migrate import Command as MigrateCommand


class Command(MigrateCommand):
    """Django's command with another default for --database."""

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.set_defaults(database="owner")

    def handle(self, *args: Any, **options: Any) -> Any:
        return super().handle(*args, **options)
