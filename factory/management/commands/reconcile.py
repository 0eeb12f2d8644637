"""Put right what time has changed: one round of every reconciler, or rounds without end."""

import time
from argparse import ArgumentParser
from typing import Any

import structlog
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from factory.evidence.schema.readiness import require_schema
from factory.kernel.absence import in_a_line, is_away
from factory.kernel.reconciling import Reconciler, reconcilers
from factory.kernel.telemetry import setup

log = structlog.get_logger("factory.kernel.reconciling")


class Command(BaseCommand):
    help = "Run the reconcilers. With --loop it stands in for the scheduler: no broker is needed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("names", nargs="*", help="only these (default: all)")
        parser.add_argument("--loop", action="store_true", help="go on until stopped")
        parser.add_argument("--every", type=float, default=10.0, help="seconds between rounds (10)")

    def handle(self, *args: Any, **options: Any) -> None:
        known = reconcilers()
        strange = sorted(set(options["names"]) - set(known))
        if strange:
            raise CommandError(f"There is no reconciler {strange[0]}. There are: {', '.join(sorted(known))}.")
        wanted = options["names"] or sorted(known)
        if options["loop"]:
            require_schema()
            setup.serve("reconcile")
        while True:
            for name in wanted:
                self._round(known[name], forgiving=options["loop"])
            if not options["loop"]:
                return
            time.sleep(options["every"])

    def _round(self, reconciler: Reconciler, *, forgiving: bool) -> None:
        """One round. A loop outlives a database that is away: it is what must go on when others do not."""
        try:
            counts = reconciler.run_once()
        except Exception as fault:
            if not forgiving:
                raise
            if is_away(fault):
                log.warning("reconcile_put_off", reconciler=reconciler.name, fault=in_a_line(fault))
            else:
                log.exception("reconcile_round_failed", reconciler=reconciler.name)
            connections.close_all()
            return
        if counts.found:
            failed = f", {counts.failed} failed (the log has each by its id)" if counts.failed else ""
            self.stdout.write(f"{reconciler.name}: {counts.repaired} of {counts.found} put right{failed}")
