"""How somebody who was made a member comes to a password: by a link to their mailbox, or from the host."""

from datetime import timedelta
from uuid import UUID

from django.conf import settings

from factory.identity.accounts import open_account, why_no_link
from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.models import JournalEntry
from factory.kernel.recording import record
from projects.commands.members import lock_member
from projects.commands.reach import require_may_give
from projects.errors import MailOff, NoSignInLink, SignInLinkSent
from projects.events import SignInLinkRequested
from projects.models import Membership

PAUSE = timedelta(minutes=5)
"""Between two links for one membership: a mailbox is not to be filled by an administrator."""


@command("SendSignInLink")
def send_sign_in_link(ctx: Context, *, membership_id: UUID) -> None:
    """Have a link sent to a member's own mailbox, by which they set a password for the console.

    The account is made here if there is none, without a password. What is sent is made where it is sent.
    Guards: as for changing the member; the installation sends mail; the member has an address; none was sent
    within five minutes. Emits: `SignInLinkRequested`. Errors: `NotFound`, `RoleOutOfReach`, `MemberRemoved`,
    `MailOff`, `NoSignInLink`, `SignInLinkSent`.
    """
    row = lock_member(ctx, membership_id)
    require_may_give(ctx, row.project_id, tuple(row.roles))
    if not settings.FACTORY_EMAIL_ON:
        raise MailOff(
            f"This installation sends no mail; `manage.py sign_in_link {row.subject}` on its host prints one."
        )
    _open(row)
    at = now()
    asked = JournalEntry.objects.filter(stream_id=row.id, cause="SignInLinkRequested").order_by("-sequence")
    last = asked.values_list("occurred_at", flat=True).first()
    if last is not None and at < last + PAUSE:
        raise SignInLinkSent(
            f"One was sent at {last:%H:%M:%S} UTC. Another can be at {last + PAUSE:%H:%M:%S}."
        )
    row.updated_at = at
    asked_for = SignInLinkRequested(
        membership_id=row.id,
        tenant_id=row.tenant_id,
        project_id=row.project_id,
        subject=row.subject,
        requested_by=ctx.actor.subject,
    )
    record(ctx, row, "SignInLinkRequested", asked_for)


@command("PrintSignInLink")
def print_sign_in_link(ctx: Context, *, membership_id: UUID) -> None:
    """Put on record that a link for a member is printed on the host; makes their account if there is none.

    Guards: the house alone (command line). Emits: nothing. Errors: `NotFound`, `MemberRemoved`,
    `NoSignInLink`.
    """
    row = lock_member(ctx, membership_id)
    _open(row)
    row.updated_at = now()
    record(ctx, row, "SignInLinkPrinted")


def _open(row: Membership) -> None:
    """The account of a member's own address. Raises `NoSignInLink`."""
    hindrance = why_no_link(row.subject)
    if hindrance:
        raise NoSignInLink(f"{row.subject} can be given no sign-in link. {hindrance}")
    open_account(row.subject)
