"""Refuse a tenant's credentials from now on, from the command line."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from factory.kernel.context import system
from factory.kernel.errors import DomainError
from projects.commands import revoke_credential, revoke_token


class Command(BaseCommand):
    help = "Revoke one token (--jti), or every token that a subject was given until now (--subject)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--jti", help="the jti of one token")
        which.add_argument("--subject", help="the subject whose tokens are meant")
        parser.add_argument("--tenant", required=True, help="the tenant whose tokens are meant")
        parser.add_argument("--reason", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        ctx, reason = system(options["tenant"], "revoke"), options["reason"]
        try:
            if options["jti"]:
                revoked = revoke_token(ctx, jti=options["jti"], reason=reason)
            else:
                revoked = (
                    f"every token of {revoke_credential(ctx, subject=options['subject'], reason=reason)}"
                )
        except DomainError as refusal:
            raise CommandError(refusal.detail) from refusal
        self.stdout.write(f"Refused from now on: {revoked}")
