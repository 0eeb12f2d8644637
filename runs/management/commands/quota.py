"""Limit how many attempts of a tenant workers have at once, from the platform's host."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from factory.kernel.context import system
from factory.kernel.errors import DomainError
from factory.kernel.tenancy import reading
from projects import selectors as projects
from runs.commands import change_quota
from runs.models import TenantQuota


class Command(BaseCommand):
    help = (
        "Show how many attempts of a tenant may be in workers' hands at once, or change it. What is set here "
        "no administrator of the tenant changes, until it is lifted here."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant")
        parser.add_argument("attempts", nargs="?", type=int, help="at most so many; 0 stops dispatch")
        parser.add_argument("--lift", action="store_true", help="no limit any more")
        parser.add_argument("--reason", default="", help="why; needed for every change")

    def handle(self, *args: Any, **options: Any) -> None:
        ctx, attempts = system(options["tenant"], "host", channel="cli"), options["attempts"]
        with reading(ctx):
            if projects.tenant(ctx.tenant_id) is None:
                raise CommandError(f"There is no tenant {ctx.tenant_id}; manage.py onboard makes one.")
        if options["lift"] and attempts is not None:
            raise CommandError("Say how many attempts, or --lift, not both.")
        if options["lift"] or attempts is not None:
            try:
                change_quota(ctx, open_attempts=attempts, reason=options["reason"])
            except DomainError as refusal:
                raise CommandError(refusal.in_words()) from refusal
        with reading(ctx):
            row = TenantQuota.objects.first()
        quota = "no quota" if row is None else f"{row}, by {row.changed_by}: {row.reason}"
        self.stdout.write(f"{ctx.tenant_id}: {quota}")
