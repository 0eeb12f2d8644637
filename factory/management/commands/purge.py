"""Remove evidence whose time is over."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from factory.evidence.retention import purge


class Command(BaseCommand):
    help = (
        "Removes journal, audit and delivered events of ended runs that are past their time, and old "
        "idempotency records. It runs as the retention role (DATABASE_RETENTION_URL), which no other "
        "process needs; each removal leaves a record, so that `verify` still passes."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        done = purge()
        self.stdout.write(f"removed: {done.words()}")
        if done.failed:
            raise CommandError(f"{done.failed} streams could not be purged; the log has each with its fault.")
