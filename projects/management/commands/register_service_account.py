"""manage.py register_service_account: a machine's identity in a project that is there already."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from factory.kernel.context import Context, system
from factory.kernel.errors import DomainError
from factory.kernel.tenancy import reading
from projects import selectors
from projects.commands import register_service_account
from projects.states import GRANTS, OF_MACHINES


class Command(BaseCommand):
    help = "Register a service account: a machine that a member answers for. Prints its subject."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="its name, once in the tenant")
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--project", required=True, metavar="SLUG")
        parser.add_argument("--owner", required=True, metavar="SUBJECT", help="the member who answers for it")
        parser.add_argument("--role", action="append", required=True, choices=OF_MACHINES)
        parser.add_argument("--grant", action="append", default=[], choices=GRANTS)
        parser.add_argument("--name", default="", help="what people call it")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            subject = _register(system(options["tenant"], "register", channel="cli"), options)
        except DomainError as refusal:
            faults = "".join(f"\n  {fault.pointer}: {fault.detail}" for fault in refusal.errors)
            raise CommandError(f"{refusal.detail}{faults}") from refusal
        self.stdout.write(json.dumps({"subject": subject}) if options["as_json"] else subject)


def _register(ctx: Context, options: dict[str, Any]) -> str:
    with reading(ctx):
        project = selectors.project_by_slug(options["project"])
    if project is None:
        raise CommandError(f"There is no project {options['project']} in {ctx.tenant_id}.")
    return register_service_account(
        ctx,
        project_id=project.id,
        slug=options["slug"],
        owner=options["owner"],
        roles=tuple(options["role"]),
        grants=tuple(options["grant"]),
        name=options["name"],
    )
