"""Throw a project's kill switch from the command line, as one of its administrators."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from factory.kernel.errors import DomainError
from factory.kernel.impact import concerns
from factory.kernel.tenancy import reading
from factory.management.acting import acting_as
from projects.commands import kill_project


class Command(BaseCommand):
    help = "Suspend a project and have every open run of it cancelled, in one act with one reason."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True)
        parser.add_argument("--project", required=True, help="the project's slug or id")
        parser.add_argument("--as", dest="subject", required=True, help="the administrator who does it")
        parser.add_argument("--reason", required=True)
        parser.add_argument("--dry-run", action="store_true", help="only say what it would reach")

    def handle(self, *args: Any, **options: Any) -> None:
        ctx = acting_as(
            options["subject"],
            tenant_id=options["tenant"],
            project=options["project"],
            scopes=("factory.projects.write",),
        )
        assert ctx.project_id is not None
        with reading(ctx):
            impact = concerns("project", ctx.project_id)
        reached = ", ".join(f"{count} {name}" for name, count in impact.items())
        if options["dry_run"]:
            self.stdout.write(f"It would reach {reached}.")
            return
        try:
            kill_project(ctx, project_id=ctx.project_id, reason=options["reason"])
        except DomainError as refusal:
            raise CommandError(refusal.detail) from refusal
        self.stdout.write(f"Suspended. {reached} when it was thrown; the open runs are being cancelled.")
