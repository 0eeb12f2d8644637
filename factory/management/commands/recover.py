"""Bring the control plane back after its database was restored."""

from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from factory.evidence.recovery import Recovery, RecoveryRefused


def moment(text: str) -> datetime:
    """A time with its zone: what is anchored about a restore is compared with times for good."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError("it has no zone")
    return at


class Command(BaseCommand):
    help = (
        "After a restore, with the product stopped: voids every token from before, brings rows up to the "
        "journal (journal, approvals, releases, outbox and inbox, in this order), makes attempts with open "
        "leases Uncertain, sends undelivered events again, and ends with the auditor. May be run again."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--force", action="store_true", help="although the product's processes are up")
        parser.add_argument(
            "--restored-to",
            type=moment,
            metavar="TIME",
            help="the time of the backup, such as 2026-11-29T10:00:00Z, if anchors need it",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        recovery = Recovery(self.stdout.write, force=options["force"], restored_to=options["restored_to"])
        try:
            report = recovery.run()
        except RecoveryRefused as refusal:
            raise CommandError(str(refusal)) from refusal
        for v in report.violations:
            self.stdout.write(f"  {v.code} {v.tenant_id} {v.subject}: {v.detail}")
        for code, fault in report.unchecked:
            self.stdout.write(f"  {code} could not be checked: {fault}")
        if recovery.left or not report.ok:
            raise SystemExit(1)
        self.stdout.write("recovered: start the product; steps that need an operator are in the console")
