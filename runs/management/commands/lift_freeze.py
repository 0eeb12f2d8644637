"""Let a frozen run go on, as a PlatformAdmin."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from factory.identity.directory import directory
from factory.kernel.context import Actor, Context, system
from factory.kernel.errors import DomainError
from factory.kernel.tenancy import reading
from runs.commands import lift_freeze


class Command(BaseCommand):
    help = "Lift the freeze of a run that the auditor has doubts about. Needs a PlatformAdmin and a reason."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=UUID)
        parser.add_argument("--tenant", required=True)
        parser.add_argument("--as", dest="subject", required=True, help="the PlatformAdmin's subject")
        parser.add_argument("--reason", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        tenant, subject = options["tenant"], options["subject"]
        with reading(system(tenant, "lift_freeze")):
            standing = directory().grants_of(subject, tenant, None)
        if standing is None:
            raise CommandError(f"{subject} is no member of the tenant {tenant}.")
        scopes = frozenset({"factory.runs.write"})
        actor = Actor(subject, standing.kind, standing.person, standing.roles, standing.grants, scopes)
        try:
            lift_freeze(
                Context(tenant, None, actor, channel="cli"), run_id=options["run"], reason=options["reason"]
            )
        except DomainError as refusal:
            raise CommandError(refusal.detail) from refusal
        self.stdout.write(f"The run {options['run']} goes on.")
