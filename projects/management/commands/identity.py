"""manage.py identity: whose sign-in an issuer's subject is, from the command line."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from factory.kernel.context import Context, system
from factory.kernel.errors import DomainError
from factory.kernel.tenancy import reading
from projects.commands import end_identity, join_identity
from projects.models import Identity
from projects.states import IdentityState


class Command(BaseCommand):
    help = "Join an issuer's subject to a member (join), end that (end), or list what is joined (list)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("act", choices=("join", "end", "list"))
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--issuer", default="", help="the iss of the tokens")
        parser.add_argument("--subject", default="", help="the sub of the tokens")
        parser.add_argument("--member", default="", help="join: the member who it is")
        parser.add_argument("--reason", default="")

    def handle(self, *args: Any, **options: Any) -> None:
        act = {"join": _join, "end": _end, "list": _list}[options["act"]]
        try:
            self.stdout.write(act(system(options["tenant"], "identity", channel="cli"), options))
        except DomainError as refusal:
            faults = "".join(f"\n  {fault.pointer}: {fault.detail}" for fault in refusal.errors)
            raise CommandError(f"{refusal.detail}{faults}") from refusal


def _join(ctx: Context, options: dict[str, Any]) -> str:
    issuer, subject, member = (options[name] for name in ("issuer", "subject", "member"))
    join_identity(ctx, issuer=issuer, subject=subject, person=member, reason=options["reason"])
    return f"Who comes as {subject} of {issuer} is {member} from now on."


def _end(ctx: Context, options: dict[str, Any]) -> str:
    with reading(ctx):
        row = Identity.objects.filter(
            issuer=options["issuer"], subject=options["subject"], state=IdentityState.ACTIVE
        ).first()
    if row is None:
        raise CommandError("No member has this sign-in: see manage.py identity list.")
    end_identity(ctx, identity_id=row.id, reason=options["reason"])
    return f"{row} is nobody's from now on."


def _list(ctx: Context, options: dict[str, Any]) -> str:
    with reading(ctx):
        rows = Identity.objects.filter(state=IdentityState.ACTIVE).order_by("person", "joined_at")
        lines = [f"{row.person}  {row.subject}  of {row.issuer}" for row in rows]
    return "\n".join(lines) or "No sign-in was joined to a member."
