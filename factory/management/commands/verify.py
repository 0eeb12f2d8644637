"""Check every invariant of the house on one snapshot of the database."""

import json
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from factory.auditing import Invariant, audit_all, invariants


class Command(BaseCommand):
    help = "The auditor: evaluates every invariant in one read-only snapshot. Exits 1 if one is violated."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("codes", nargs="*", help="only these invariants, such as A6 D1")
        parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")

    def handle(self, *args: Any, **options: Any) -> None:
        unknown = set(options["codes"]) - {rule.code for rule in invariants()}
        if unknown:
            raise CommandError(f"There is no invariant {', '.join(sorted(unknown))}.")
        started = time.monotonic()
        speak = None if options["json"] else self._tell
        found = audit_all(options["codes"] or None, speak)
        seconds = round(time.monotonic() - started, 2)
        if options["json"]:
            violations = [{n: getattr(v, n) for n in v.__slots__} for v in found]
            self.stdout.write(json.dumps({"ok": not found, "violations": violations, "seconds": seconds}))
        else:
            for v in found:
                self.stdout.write(f"  {v.code} {v.tenant_id} {v.subject}: {v.detail}")
            self.stdout.write(f"{len(found)} violations, {seconds} s")
        if found:
            raise SystemExit(1)

    def _tell(self, rule: Invariant, violations: int) -> None:
        mark = "ok " if not violations else f"{violations} ×"
        self.stdout.write(f"{mark:>6}  {rule.code:<4} {rule.title}")
