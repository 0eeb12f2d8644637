"""`migrate`, as the role that owns the tables: the application's own role may not change them."""

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.core.management.commands.migrate import Command as MigrateCommand
from django.db import IntegrityError, OperationalError, connections

from factory.evidence.schema.comparing import Comparison
from factory.evidence.schema.readiness import compared, named
from factory.kernel.migration_operations import unchecked_constraints


class Command(MigrateCommand):
    """Django's command with another default for --database."""

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.set_defaults(database="owner")
        parser.add_argument(
            "--skip-schema", action="store_true", help="do not compare the schema with what migrations make"
        )

    def handle(self, *args: Any, **options: Any) -> Any:
        told = super().handle(*args, **options)
        whole = not (options["app_label"] or options["plan"] or options["check_unapplied"])
        if whole:
            self._check_constraints(options["database"])
        if whole and not options["skip_schema"]:
            self._say(compared(options["database"]))
        return told

    def _check_constraints(self, database: str) -> None:
        """Have every row obey what was added for new rows alone, or say where one does not."""
        with connections[database].cursor() as cursor:
            for table, name in unchecked_constraints(cursor):
                try:
                    cursor.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT {name}")
                except IntegrityError:
                    self.stderr.write(
                        f"Some rows of {table} are older than {name} and break it; new ones cannot. "
                        "`manage.py verify` names them: mend them, and migrate again."
                    )
                except OperationalError as fault:
                    self.stderr.write(
                        f"All migrations are applied; older rows of {table} are not checked against {name} "
                        f"yet ({str(fault).strip()}). Migrate again when the database is less busy."
                    )

    def _say(self, found: Comparison) -> None:
        """Name what differs from what the migrations make; it is a failure where it keeps from working."""
        if found.faults:
            raise CommandError(
                f"All migrations are applied, and yet the schema differs: {named(found.faults)}. "
                "manage.py schema_fingerprint lists it, each with the definition that it should have."
            )
        for each in found.differences:
            self.stderr.write(f"{each}.")
