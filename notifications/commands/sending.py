"""The two ends of a try to send, and a person's word to try again. What lies between holds no transaction."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.conf import settings

from approvals.selectors import ApprovalView, approval
from factory.identity.accounts import account_of, why_no_link_here
from factory.kernel import clock
from factory.kernel.commanding import after_commit, command
from factory.kernel.context import Context
from factory.kernel.errors import NotFound
from factory.kernel.hashing import storable
from factory.kernel.locking import lock
from factory.kernel.reasons import reasoned
from factory.kernel.recording import audit, save
from factory.kernel.retries import delay_after
from factory.messaging.relay.jobs import hint
from factory.messaging.webhooks.signing import SecretUnreadable, opened
from notifications.channels.messages import Message, ending_budget, message, sign_in_message
from notifications.errors import NotificationNotSetAside
from notifications.models import Notification
from notifications.selectors import email_of
from notifications.states import SEND, Kind, Medium, NotificationState
from projects.selectors import project

CLAIM: Final = timedelta(minutes=2)
"""Longer than a try may take, so that nobody else sends what is being sent."""
OPEN_QUESTIONS: Final = (Kind.REQUESTED, Kind.EXPIRING, Kind.TOO_FEW)
"""Kinds that are worth nothing once the request is closed."""


@dataclass(frozen=True, slots=True)
class ClaimedMessage:
    """A try that is ours to make. `address` may hold a secret."""

    id: UUID
    attempt: int
    medium: str
    message: Message
    address: str = field(repr=False)


@command("ClaimNotification", audited=False)
def claim(ctx: Context, *, notification_id: UUID) -> ClaimedMessage | None:
    """Take the right to send a notification for two minutes; None when there is nothing to send (any more).

    What became pointless is dropped with its reason: a question that is closed, a person who has left, a
    channel that was removed. Guards: the system alone. Emits: nothing. Errors: `NotFound`.
    """
    row = _locked(notification_id)
    at = clock.now()
    taken = row.claimed_until is not None and row.claimed_until > at
    early = row.due_at is not None and row.due_at > at
    if row.state != NotificationState.WAITING or taken or early:
        return None
    view = approval(row.notice.approval_id) if row.notice.approval_id else None
    address, why = _address(row, view)
    if why:
        row.drop(at=at, why=why)
        save(row)
        return None
    if delay_after(row.attempts) is None:  # each try ended with its sender
        row.fail(at=at, error=row.error or "Whoever sent it never came back.", due_at=None)
        save(row)
        return None
    row.claim(until=at + CLAIM)
    save(row)
    return ClaimedMessage(row.id, row.attempts, row.medium, _message(row, view), address)


@command("SettleNotification", audited=False)
def settle(
    ctx: Context, *, notification_id: UUID, attempt: int, error: str = "", final: bool = False
) -> None:
    """Record what came of an attempt. With an error it is tried again later, or after the last (or a `final`)
    set aside. Of a try that somebody else has followed only a success is noted.

    Guards: the system alone. Emits: nothing. Errors: `NotFound`.
    """
    row = _locked(notification_id)
    at = clock.now()
    if row.sent_at is not None or row.dropped_at is not None or (error and row.attempts != attempt):
        return
    if not error:
        row.set_aside_at = None
        row.arrive(at=at)
    else:
        delay = None if final else delay_after(attempt)
        due_at = None if delay is None else at + timedelta(seconds=delay)
        row.fail(at=at, error=storable(error, 500), due_at=due_at)
    save(row)


@command("RetryNotification", strict=True)
def retry_notification(ctx: Context, *, notification_id: UUID, reason: str) -> str:
    """Send what was set aside again, with all its tries before it.

    Guards: an operator or admin of its scope; a reason. Emits: nothing. Errors: `NotFound`,
    `InvalidInput`, `NotificationNotSetAside`.
    """
    row = _locked(notification_id)
    if ctx.project_id is not None and row.project_id != ctx.project_id:
        raise _missing()
    reason = reasoned(reason, "Say why.")
    if row.set_aside_at is None:
        raise NotificationNotSetAside("It is on its way, or has arrived. There is nothing to send again.")
    row.offer_again()
    save(row)
    audit(ctx, "RetryNotification", subject=f"notification:{row.id}", reason=reason)
    after_commit(lambda: hint(SEND, tenant_id=ctx.tenant_id))
    return str(row.id)


def _locked(notification_id: UUID) -> Notification:
    return lock(Notification, notification_id, missing=_missing())


def _missing() -> NotFound:
    return NotFound("There is no such notification here.")


def _message(row: Notification, view: ApprovalView | None) -> Message:
    if row.notice.month is not None:
        where = project(row.notice.project_id)
        return ending_budget(row.notice.month, where.slug if where else "")
    account = account_of(row.subject) if row.notice.kind == Kind.SIGN_IN else None
    return message(row.notice.kind, view) if account is None else sign_in_message(account)


def _address(row: Notification, view: ApprovalView | None) -> tuple[str, str]:
    """Return where it goes, or why it goes nowhere."""
    if row.notice.kind in OPEN_QUESTIONS and view is not None and not view.is_pending:
        return "", f"The request was closed before this could be sent: {view.state}."
    email = email_of(row.subject, row.project_id)
    if email is None:
        return "", "The person is no member there any more."
    if row.notice.kind == Kind.SIGN_IN:
        email, why = _mailbox(row.subject)
        if why:
            return "", why
    if row.medium == Medium.SERVICE:
        return _of_channel(row)
    if not settings.FACTORY_EMAIL_ON:
        return "", "The installation sends no e-mail any more."
    return (email, "") if email else ("", "The person has no e-mail address any more.")


def _mailbox(subject: str) -> tuple[str, str]:
    """Return the mailbox that a link proves: the account's own, wherever other mail of the member goes."""
    account, hindrance = account_of(subject), why_no_link_here(subject)
    if account is None or hindrance:
        return "", hindrance or "The account is not there any more."
    return account.email, ""


def _of_channel(row: Notification) -> tuple[str, str]:
    if row.channel is None or row.channel.removed_at is not None:
        return "", "The channel was removed."
    try:
        return opened(row.channel.address), ""
    except SecretUnreadable:
        return "", "The channel's address was sealed under another SECRET_KEY: its owner has to add it anew."
