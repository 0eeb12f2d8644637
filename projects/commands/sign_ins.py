"""How somebody who was made a member comes to a password: by a link to their mailbox, or from the host."""

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from factory.identity.accounts import open_account, why_no_link, why_no_link_here
from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.locking import one_at_a_time
from factory.kernel.models import AuditEntry, User
from factory.kernel.recording import record
from projects.commands.members import lock_member
from projects.commands.reach import require_may_give
from projects.errors import MailOff, NoSignInLink, SignInLinkSent
from projects.events import SignInLinkRequested
from projects.models import Membership

PAUSE = timedelta(minutes=5)
"""Between two links to one mailbox, whoever asks: it is not to be filled by administrators."""
HOUR = timedelta(hours=1)
MOST_AN_HOUR = 30
"""Links that one tenant has mailed within an hour, to whomever."""


@command("SendSignInLink")
def send_sign_in_link(ctx: Context, *, membership_id: UUID) -> None:
    """Have a link sent to a member's own mailbox, by which they set a password for the console.

    The account is made here if there is none, without a password. What is sent is made where it is sent.
    Guards: as for changing the member; the installation sends mail; the member has an address; none was sent
    to that mailbox within five minutes by any tenant, nor thirty by this one within an hour. Emits:
    `SignInLinkRequested`. Errors: `NotFound`, `RoleOutOfReach`, `MemberRemoved`, `MailOff`, `NoSignInLink`,
    `SignInLinkSent`.
    """
    row = lock_member(ctx, membership_id)
    require_may_give(ctx, row.project_id, tuple(row.roles))
    if not settings.FACTORY_EMAIL_ON:
        raise MailOff(
            f"This installation sends no mail; `manage.py sign_in_link {row.subject}` on its host prints one."
        )
    one_at_a_time("projects.sign_in_links", ctx.tenant_id)
    account = _open(row, why_no_link_here(row.subject))
    at = now()
    _refuse_many(account, at)
    account.link_asked_at = row.updated_at = at
    account.save(update_fields=["link_asked_at"])
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

    Guards: the system alone (command line). Emits: nothing. Errors: `NotFound`, `MemberRemoved`,
    `NoSignInLink`.
    """
    row = lock_member(ctx, membership_id)
    _open(row, why_no_link(row.subject))
    row.updated_at = now()
    record(ctx, row, "SignInLinkPrinted")


def _refuse_many(account: User, at: datetime) -> None:
    """Refuse a link too soon after the last one to this mailbox, or after many of this tenant."""
    if account.link_asked_at is not None and at < account.link_asked_at + PAUSE:
        raise SignInLinkSent("One was asked for within the last five minutes. Another can be five after it.")
    sent = AuditEntry.objects.filter(action="SendSignInLink", outcome="done", occurred_at__gt=at - HOUR)
    if sent.count() >= MOST_AN_HOUR:
        raise SignInLinkSent(
            f"This tenant has had {MOST_AN_HOUR} sent within an hour. Wait, or ask the host."
        )


def _open(row: Membership, hindrance: str) -> User:
    """Return the account of a member's own address. Raises `NoSignInLink`."""
    if hindrance:
        raise NoSignInLink(f"{row.subject} can be given no sign-in link. {hindrance}")
    return open_account(row.subject, row.tenant_id)
