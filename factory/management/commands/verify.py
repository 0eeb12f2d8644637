"""Check every invariant of the control plane on one snapshot of the database."""

import json
import time
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from factory.evidence.anchors.place import in_folder
from factory.evidence.auditor import Invariant, VerificationReport, invariants, verify
from factory.evidence.verification import verify_and_act


class Command(BaseCommand):
    help = (
        "The auditor: evaluates every invariant in one read-only snapshot. Exits 1 if one is violated, and "
        "2 if one could not be checked. When all are evaluated, what was found is recorded for the console, "
        "and runs that a violation is about are frozen."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("codes", nargs="*", help="only these invariants, such as A6 D1")
        parser.add_argument("--anchors", type=Path, help="the folder of the anchors to compare with (A7)")
        parser.add_argument("--look-only", action="store_true", help="record nothing, and freeze no run")
        parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")

    def handle(self, *args: Any, **options: Any) -> None:
        unknown = set(options["codes"]) - {rule.code for rule in invariants()}
        if unknown:
            raise CommandError(f"There is no invariant {', '.join(sorted(unknown))}.")
        started = time.monotonic()
        if options["anchors"] and not options["anchors"].is_dir():
            raise CommandError(f"There is no folder {options['anchors']}.")
        with in_folder(options["anchors"]):
            speak = None if options["json"] else self._tell
            if options["codes"] or options["look_only"]:
                report = verify(options["codes"] or None, speak)
            else:
                report = verify_and_act(speak)
        seconds = round(time.monotonic() - started, 2)
        self._print(report, seconds, as_json=options["json"])
        if not report.ok:
            raise SystemExit(1 if report.violations else 2)

    def _print(self, report: VerificationReport, seconds: float, *, as_json: bool) -> None:
        if as_json:
            violations = [{n: getattr(v, n) for n in v.__slots__} for v in report.violations]
            unchecked = [{"code": code, "fault": fault} for code, fault in report.unchecked]
            told = {"ok": report.ok, "violations": violations, "unchecked": unchecked, "seconds": seconds}
            self.stdout.write(json.dumps(told))
            return
        for v in report.violations:
            self.stdout.write(f"  {v.code} {v.tenant_id} {v.subject}: {v.detail}")
        for code, fault in report.unchecked:
            self.stdout.write(f"  {code} could not be checked: {fault}")
        self.stdout.write(
            f"{len(report.violations)} violations, {len(report.unchecked)} not checked, {seconds} s"
        )

    def _tell(self, rule: Invariant, violations: int | None) -> None:
        mark = "?" if violations is None else "ok " if not violations else f"{violations} ×"
        self.stdout.write(f"{mark:>6}  {rule.code:<4} {rule.title}")
