"""Refuse a worker's credential from now on, from the command line."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from factory.context import system
from factory.errors import DomainError
from runs.commands import revoke_worker
from runs.models import Worker


class Command(BaseCommand):
    help = "Revoke every token of a worker until now, for every tenant that its pool serves."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("pool")
        parser.add_argument("name", help="the worker's name in the pool")
        parser.add_argument("--reason", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Each tenant that the pool serves has it in its own audit log."""
        worker = Worker.objects.select_related("pool").filter(pool_id=options["pool"], name=options["name"])
        found = worker.first()
        if found is None:
            raise CommandError(f"There is no worker {options['name']} in a pool {options['pool']}.")
        try:
            for tenant_id in found.pool.tenants:
                revoke_worker(system(tenant_id, "revoke"), worker_id=found.id, reason=options["reason"])
        except DomainError as refusal:
            raise CommandError(refusal.detail) from refusal
        self.stdout.write(f"Refused from now on: every token of {found.subject}")
