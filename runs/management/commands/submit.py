"""Submit a run from the command line, as one of the project's members."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from factory.api.strict_json import Malformed, loads_kept
from factory.kernel.context import Context
from factory.kernel.errors import DomainError, ValueNotKept
from factory.kernel.hashing import digest
from factory.kernel.tenancy import reading
from factory.management.acting import acting_as
from runs.rest.submissions import submit
from runs.selectors import find_run
from runs.selectors.reruns import again


class Command(BaseCommand):
    help = "Submit a run. The submission is the JSON that POST /factory/runs takes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("submission", nargs="?", help="a file with the JSON, or - for standard input")
        parser.add_argument("--previous", type=UUID, help="the run that this one runs again, and refers to")
        parser.add_argument("--alias", help="with --previous alone: the release that this alias names")
        parser.add_argument("--release", type=UUID, help="with --previous alone: this release, not the same")
        parser.add_argument("--tenant", required=True)
        parser.add_argument("--project", required=True, help="the project's slug")
        parser.add_argument("--as", dest="subject", required=True, help="the subject who requests it")
        parser.add_argument(
            "--key", help="the idempotency key; without one, the submission itself is the key"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        scopes = ("factory.runs.write", "factory.runs.read")
        ctx = acting_as(
            options["subject"], tenant_id=options["tenant"], project=options["project"], scopes=scopes
        )
        payload = self._wanted(ctx, options)
        try:
            body, replayed = submit(ctx, payload=payload, key=options["key"] or digest(payload))
        except DomainError as refusal:
            raise CommandError(refusal.detail + _with_places(refusal)) from refusal
        if replayed:
            self.stderr.write("This was submitted before; the run is the same.")
        self.stdout.write(json.dumps(body))

    def _wanted(self, ctx: Context, options: dict[str, Any]) -> Any:
        """The submission, or, with --previous alone, that of the earlier run once more."""
        previous = options["previous"]
        if options["submission"]:
            payload = self._payload(options["submission"])
            return payload if previous is None else {**payload, "previousRunId": str(previous)}
        if previous is None:
            raise CommandError("Name a file with the submission, or the run to run again with --previous.")
        try:
            with reading(ctx):
                run = find_run(ctx, previous)
                return again(run, release_id=options["release"], alias=options["alias"])
        except DomainError as refusal:
            raise CommandError(refusal.detail) from refusal

    def _payload(self, source: str) -> Any:
        try:
            return loads_kept(sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes())
        except ValueNotKept as fault:
            raise CommandError(fault.detail + _with_places(fault)) from fault
        except (OSError, Malformed) as fault:
            raise CommandError(f"{source} cannot be read as JSON: {fault}") from fault


def _with_places(refusal: DomainError) -> str:
    """Return a line for each fault of the input, with its place."""
    return "".join(f"\n  {fault.pointer}: {fault.detail}" for fault in refusal.errors)
