"""manage.py sign_in_link: a link by which a member sets their password, for who runs the installation."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from factory.identity.accounts import account_of, link_hours, sign_in_link
from factory.kernel.context import system
from factory.kernel.errors import DomainError
from projects.commands import print_sign_in_link
from projects.selectors import memberships_of_address


class Command(BaseCommand):
    help = "Print a link by which a member sets their password for the console: once, within its time."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("address", help="the member's address, as their page in the console shows it")

    def handle(self, *args: Any, **options: Any) -> None:
        memberships = memberships_of_address(options["address"])
        if not memberships:
            raise CommandError(f"Nobody is a member as {options['address']}: see manage.py onboard.")
        for tenant_id, (membership_id, _) in memberships.items():
            self._record(tenant_id, membership_id)
        (subject, *others) = {subject for _, subject in memberships.values()}
        account = account_of(subject)
        if account is None or others:
            raise CommandError(f"{options['address']} is spelled differently in several tenants.")
        self.stdout.write(sign_in_link(account))
        self.stderr.write(f"It is good once, for {link_hours()} hours. Give it to {account.email} alone.")

    def _record(self, tenant_id: str, membership_id: UUID) -> None:
        """In each tenant that the account opens, its administrators read that a link was made."""
        try:
            print_sign_in_link(system(tenant_id, "sign-in-link", channel="cli"), membership_id=membership_id)
        except DomainError as refusal:
            raise CommandError(refusal.detail) from refusal
