"""Drain a worker, or end its drain, for every tenant that its pool serves, from the command line."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from runs.commands import undrain
from runs.dispatch import drain_from_outside
from runs.management.workers import add_worker, for_everybody


class Command(BaseCommand):
    help = (
        "Offer a worker nothing new, also after a restart, until --end: what it holds it may finish. Of a "
        "pool that serves several tenants nobody else can do that."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_worker(parser)
        parser.add_argument("--end", action="store_true", help="offer it work again")

    def handle(self, *args: Any, **options: Any) -> None:
        act = undrain if options["end"] else drain_from_outside
        found = for_everybody(
            options, lambda ctx, worker, reason: act(ctx, worker_id=worker.id, reason=reason)
        )
        self.stdout.write(f"{found}: {'is offered work again' if options['end'] else 'drains'}")
