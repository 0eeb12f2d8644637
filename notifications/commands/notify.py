"""Making notifications: one for each person and way, in one transaction with the notice itself."""

from collections.abc import Sequence
from datetime import date, datetime
from uuid import UUID

from approvals.selectors import ApprovalView, approval
from factory.kernel import clock
from factory.kernel.commanding import after_commit, command
from factory.kernel.context import Context
from factory.kernel.errors import NotFound
from factory.kernel.locking import lock
from factory.kernel.recording import save
from factory.messaging.relay.jobs import hint
from notifications.models import Notice, Notification
from notifications.selectors import ChannelView, chosen_channels, people_over_money, recipients_of
from notifications.states import SEND, Kind, Medium

PART_LEFT = 4
"""A reminder goes out when a fourth of a request's time is left."""


@command("TellOfApproval", audited=False)
def notify_of_approval(ctx: Context, *, kind: str, approval_id: UUID, passed_over: Sequence[str] = ()) -> int:
    """Tell those whom it concerns, once: answers how many messages there are to send.

    Who that is, is judged now. A second call finds the notice and makes nothing. Guards: the system alone.
    Emits: nothing. Errors: none: a request that is not here is nothing to tell.
    """
    try:
        view = approval(approval_id)
    except NotFound:
        return 0
    at = clock.now()
    made = _notify(ctx, Kind(kind), view, passed_over, at)
    if kind == Kind.REQUESTED and view.nobody_eligible:
        made += _notify(ctx, Kind.TOO_FEW, view, (), at)
    return made


@command("TellOfEndingBudget", audited=False)
def notify_of_ending_budget(ctx: Context, *, project_id: UUID | None, month: date) -> int:
    """Tell who can open a budget, once, that none covers a month: answers how many messages there are.

    Guards: the system alone. Emits: nothing. Errors: none.
    """
    if Notice.objects.filter(kind=Kind.BUDGET_ENDING, project_id=project_id, month=month).exists():
        return 0
    notice = Notice(
        tenant_id=ctx.tenant_id,
        kind=Kind.BUDGET_ENDING,
        project_id=project_id,
        month=month,
        made_at=clock.now(),
    )
    save(notice)
    return notify(ctx, notice, chosen_channels(Kind.BUDGET_ENDING, people_over_money(project_id), project_id))


@command("RemindOfExpiry", audited=False)
def remind_of_expiry(ctx: Context, *, notice_id: UUID) -> int:
    """Tell those who may decide now, once, that a request's time is nearly over, unless it is decided.

    Guards: the system alone; the time has come. Emits: nothing. Errors: `NotFound`.
    """
    notice = lock(Notice, notice_id, missing=NotFound("There is no such notice here."))
    at = clock.now()
    if notice.reminded_at is not None or notice.remind_at is None or at < notice.remind_at:
        return 0
    assert notice.approval_id is not None  # a CHECK: only a test is about no request
    view = approval(notice.approval_id)
    made = 0
    if view.is_pending and at < view.expires_at:
        made = _notify(ctx, Kind.EXPIRING, view, (), at)
    notice.reminded_at = at
    save(notice)
    return made


@command("TellOfSignIn", audited=False)
def notify_of_sign_in(ctx: Context, *, project_id: UUID | None, subject: str) -> int:
    """Have a member's sign-in link sent by mail, and by nothing else: it proves their mailbox.

    Guards: the system alone. Emits: nothing. Errors: none.
    """
    notice = Notice(tenant_id=ctx.tenant_id, kind=Kind.SIGN_IN, project_id=project_id, made_at=clock.now())
    save(notice)
    return notify(ctx, notice, [ChannelView(subject, Medium.EMAIL)])


def _notify(ctx: Context, kind: Kind, view: ApprovalView, passed_over: Sequence[str], at: datetime) -> int:
    if view.waiver_id is not None:
        return 0  # it was decided when the waiver was: nobody is asked, and each write tells nobody
    if Notice.objects.filter(approval_id=view.id, kind=kind).exists():
        return 0
    ends = view.expires_at if kind == Kind.REQUESTED and view.is_pending else None
    notice = Notice(
        tenant_id=ctx.tenant_id,
        kind=kind,
        approval_id=view.id,
        project_id=view.project_id,
        made_at=at,
        remind_at=ends - (ends - view.requested_at) / PART_LEFT if ends else None,
    )
    save(notice)
    people = recipients_of(kind, view, passed_over)
    return notify(ctx, notice, chosen_channels(kind, people, view.project_id))


def notify(ctx: Context, notice: Notice, channels: Sequence[ChannelView]) -> int:
    """Make a notification for each channel, and hint that there is something to send."""
    Notification.objects.bulk_create(
        Notification(
            tenant_id=ctx.tenant_id,
            notice=notice,
            project_id=notice.project_id,
            subject=channel.subject,
            medium=channel.medium,
            channel_id=channel.channel_id,
            created_at=notice.made_at,
        )
        for channel in channels
    )
    if channels:
        after_commit(lambda: hint(SEND, tenant_id=ctx.tenant_id))
    return len(channels)
