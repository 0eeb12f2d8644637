"""Submit a run from the command line, as one of the project's members."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from factory.context import Actor, Context, system
from factory.errors import DomainError
from factory.hashing import digest
from factory.identity.directory import directory
from factory.tenancy import reading
from projects.selectors import project_by_slug
from runs.commands import submit


class Command(BaseCommand):
    help = "Submit a run. The submission is the JSON that POST /factory/runs takes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("submission", help="a file with the JSON, or - for standard input")
        parser.add_argument("--tenant", required=True)
        parser.add_argument("--project", required=True, help="the project's slug")
        parser.add_argument("--as", dest="subject", required=True, help="the subject who requests it")
        parser.add_argument(
            "--key", help="the idempotency key; without one, the submission itself is the key"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        payload = self._payload(options["submission"])
        ctx = self._context(options["tenant"], options["project"], options["subject"])
        try:
            body, replayed = submit(ctx, payload=payload, key=options["key"] or digest(payload))
        except DomainError as refusal:
            faults = "".join(f"\n  {fault.pointer}: {fault.detail}" for fault in refusal.errors)
            raise CommandError(f"{refusal.detail}{faults}") from refusal
        if replayed:
            self.stderr.write("This was submitted before; the run is the same.")
        self.stdout.write(json.dumps(body))

    def _payload(self, source: str) -> Any:
        try:
            text = sys.stdin.read() if source == "-" else Path(source).read_text("utf-8")
            return json.loads(text)
        except (OSError, ValueError) as fault:
            raise CommandError(f"{source} cannot be read as JSON: {fault}") from fault

    def _context(self, tenant_id: str, slug: str, subject: str) -> Context:
        """What the subject is in the project by their memberships: no more is claimed than they have."""
        with reading(system(tenant_id, "submit")):
            project = project_by_slug(slug)
            standing = directory().grants_of(subject, tenant_id, project.id) if project else None
        if project is None or standing is None:
            raise CommandError(f"{subject} is no member of a project {slug} of the tenant {tenant_id}.")
        actor = Actor(
            subject,
            "service" if subject.startswith("service:") else "person",
            person=standing.person,
            roles=standing.roles,
            grants=standing.grants,
            scopes=frozenset({"factory.runs.write", "factory.runs.read"}),
        )
        return Context(tenant_id, project.id, actor, channel="cli")
