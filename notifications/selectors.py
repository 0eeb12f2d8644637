"""Reads: who is told of what by which way, and what somebody may see of it."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from approvals.selectors import ApprovalView, votes_of, who_may_decide
from approvals.states import ApprovalState
from factory.kernel.context import Context
from notifications.models import Channel, Notice, Notification, Preference
from notifications.states import CHOOSABLE, OVER_MONEY, Kind, Medium, NotificationState
from projects.selectors import members, memberships_among
from projects.states import Role, SubjectKind


@dataclass(frozen=True, slots=True)
class ChannelView:
    """Name a way to one person: by e-mail, or by a channel of theirs."""

    subject: str
    medium: Medium
    channel_id: UUID | None = None


def recipients_of(kind: Kind, view: ApprovalView, passed_over: Collection[str] = ()) -> list[str]:
    """Return whom something concerns now. Who may decide is judged by the approvals' own rule."""
    if kind in (Kind.REQUESTED, Kind.EXPIRING):
        if not view.is_pending:
            return []
        voted = {vote.voter for vote in votes_of(view.id)} if view.votes else set()
        able = (
            person
            for person in who_may_decide(view.id)
            if person.may_decide and person.person == person.subject
        )
        return [person.subject for person in able if person.subject not in voted]
    if kind == Kind.TOO_FEW:
        operators = members(view.project_id, [Role.OPERATOR]) if view.is_pending else []
        return sorted({person.subject for person in operators if person.kind == SubjectKind.PERSON})
    if kind == Kind.BREAK_GLASS:
        return sorted(set(passed_over) - {view.decided_by})
    if not view.decision and view.state != ApprovalState.EXPIRED:
        return []  # cancelled or replaced: whoever asked did that, or sees the newer request
    return sorted({view.requester_person, view.author_person} - {"", view.decided_by})


def people_over_money(project_id: UUID | None) -> list[str]:
    """Return who decides over the money of a project, or of the whole tenant, at this moment."""
    admins = {Role.WORKSPACE_ADMIN, Role.PLATFORM_ADMIN}
    people = (member for member in members(project_id) if member.kind == SubjectKind.PERSON)
    return sorted(
        {member.subject for member in people if OVER_MONEY in member.grants or admins & set(member.roles)}
    )


def emails_of(subjects: Iterable[str], project_id: UUID | None) -> dict[str, str]:
    """Return the address of each who is a member there now, in one query; empty for who has none.

    Who is no member, or no person, is not among them.
    """
    addresses: dict[str, str] = {}
    for member in memberships_among(subjects, project_id):
        if member.kind == SubjectKind.PERSON:
            addresses[member.subject] = addresses.get(member.subject) or member.email
    return addresses


def email_of(subject: str, project_id: UUID | None) -> str | None:
    """Return the address of somebody who is a member there now; None for who is none any more."""
    return emails_of([subject], project_id).get(subject)


def chosen_channels(kind: Kind, subjects: Iterable[str], project_id: UUID | None) -> list[ChannelView]:
    """Return the channels by which these people want a message of this kind."""
    present = emails_of(subjects, project_id)
    if not present:
        return []
    views: list[ChannelView] = []
    if settings.FACTORY_EMAIL_ON:
        rows = Preference.objects.filter(subject__in=present)
        chosen = dict(rows.values_list("subject", "kinds"))
        views += [
            ChannelView(w, Medium.EMAIL)
            for w, at in present.items()
            if at and kind in chosen.get(w, CHOOSABLE)
        ]
    channels = Channel.objects.filter(subject__in=present, removed_at__isnull=True, kinds__contains=[kind])
    views += [ChannelView(row.subject, Medium.SERVICE, row.id) for row in channels.order_by("subject", "id")]
    return views


def kinds_by_email(subject: str) -> tuple[list[str], int]:
    """Return what somebody wants by e-mail, and the version of that choice: 0 where they never chose."""
    row = Preference.objects.filter(subject=subject).first()
    return ([str(kind) for kind in CHOOSABLE], 0) if row is None else (list(row.kinds), row.version)


def channels_of(subject: str) -> "QuerySet[Channel]":
    """Return somebody's channels that are in use; no command and no page reaches another's."""
    rows: QuerySet[Channel] = Channel.objects.filter(subject=subject, removed_at__isnull=True)
    return rows


def notices_about(approval_id: UUID) -> "QuerySet[Notice]":
    """Return the notices about one request."""
    return Notice.objects.filter(approval_id=approval_id)


def notifications_of(ctx: Context) -> "QuerySet[Notification]":
    """Return the notifications of a scope: of the project, or of the whole tenant."""
    rows: QuerySet[Notification] = Notification.objects.select_related("notice", "channel")
    return rows if ctx.project_id is None else rows.filter(project_id=ctx.project_id)


STATE_FILTERS = {
    NotificationState.WAITING: {
        "sent_at__isnull": True,
        "set_aside_at__isnull": True,
        "dropped_at__isnull": True,
    },
    NotificationState.SENT: {"sent_at__isnull": False},
    NotificationState.SET_ASIDE: {"set_aside_at__isnull": False},
    NotificationState.DROPPED: {"dropped_at__isnull": False},
}


def set_aside(ctx: Context, limit: int) -> Sequence[Notification]:
    rows = notifications_of(ctx).filter(**STATE_FILTERS[NotificationState.SET_ASIDE])
    return list(rows.order_by("-set_aside_at")[:limit])


def last_of_channels(channels: Iterable[Channel]) -> dict[UUID, Notification]:
    """Return the newest notification by each channel: how it has been doing."""
    rows = Notification.objects.filter(channel__in=[channel.id for channel in channels])
    newest = rows.order_by("channel_id", "-created_at", "-id").distinct("channel_id")
    return {row.channel_id: row for row in newest if row.channel_id}
