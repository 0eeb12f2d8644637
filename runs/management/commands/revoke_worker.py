"""Refuse a worker's credential from now on, from the command line."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from runs.dispatch import revoke_from_outside
from runs.management.workers import add_worker, for_everybody


class Command(BaseCommand):
    help = "Revoke every token of a worker until now, for every tenant that its pool serves."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_worker(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        found = for_everybody(
            options, lambda ctx, worker, reason: revoke_from_outside(ctx, worker_id=worker.id, reason=reason)
        )
        self.stdout.write(f"Refused from now on: every token of {found.subject}")
