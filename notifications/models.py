"""Who wants to be told by which way, what there is to tell, and each message's way to one person."""

from datetime import datetime
from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from factory.kernel.models.base import TenantForeignKey, TenantModel, in_check, uuid_key
from notifications.states import ABOUT_NO_REQUEST, CHOOSABLE, Kind, Medium, NotificationState


def kinds_field() -> "ArrayField[list[str], list[str]]":
    return ArrayField(models.CharField(max_length=16), default=list, blank=True)


def kinds_known(name: str) -> models.CheckConstraint:
    return models.CheckConstraint(condition=Q(kinds__contained_by=list(CHOOSABLE)), name=name)


class Preference(TenantModel):
    """Keep what somebody wants by e-mail in this tenant. Without a row they get all that concerns them."""

    id = uuid_key()
    subject = models.CharField(max_length=255)
    kinds = kinds_field()
    version = models.BigIntegerField(default=0)
    updated_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant_id", "subject"], name="preference_once"),
            kinds_known("preference_kinds_known"),
        ]

    def __str__(self) -> str:
        return self.subject


class Channel(TenantModel):
    """A service by which somebody is told besides. The address holds a secret: it is sealed, and goes when
    the channel is removed."""

    id = uuid_key()
    subject = models.CharField(max_length=255)
    name = models.CharField(max_length=80)
    service = models.CharField(max_length=32)
    address = models.TextField()
    kinds = kinds_field()
    version = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    removed_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant_id", "subject", "name"],
                condition=Q(removed_at__isnull=True),
                name="channel_name_once",
            ),
            models.CheckConstraint(
                condition=(Q(removed_at__isnull=True) & ~Q(address=""))
                | Q(removed_at__isnull=False, address=""),
                name="channel_address_while_it_is_used",
            ),
            kinds_known("channel_kinds_known"),
        ]

    def __str__(self) -> str:
        return self.name


class Notice(TenantModel):
    """Something to tell: once for each request and kind, or month, however often the event about it comes.

    `remind_at` is when a quarter of the request's time is left; `reminded_at`, when that was dealt with.
    """

    id = uuid_key()
    kind = models.CharField(max_length=16, choices=Kind.choices)
    approval = TenantForeignKey("approvals.ApprovalRequest", null=True, related_name="+")
    project_id = models.UUIDField(null=True)
    month = models.DateField(null=True)
    made_at = models.DateTimeField()
    remind_at = models.DateTimeField(null=True)
    reminded_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["approval", "kind"], condition=Q(approval__isnull=False), name="notice_once"
            ),
            models.CheckConstraint(condition=in_check("kind", Kind.values), name="notice_kind_known"),
            models.CheckConstraint(
                condition=Q(kind__in=ABOUT_NO_REQUEST, approval__isnull=True)
                | (~Q(kind__in=ABOUT_NO_REQUEST) & Q(approval__isnull=False)),
                name="notice_about_a_request",
            ),
            models.CheckConstraint(
                condition=Q(kind=Kind.BUDGET_ENDING, month__isnull=False)
                | (~Q(kind=Kind.BUDGET_ENDING) & Q(month__isnull=True)),
                name="notice_about_a_month",
            ),
            models.UniqueConstraint(
                fields=["tenant_id", "project_id", "month", "kind"],
                condition=Q(month__isnull=False),
                nulls_distinct=False,
                name="notice_month_once",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["tenant_id", "kind", "made_at"],
                condition=~Q(kind__in=[Kind.REQUESTED, Kind.DECIDED]),  # those of every request
                name="notice_by_kind",
            ),
            models.Index(
                fields=["remind_at"],
                condition=Q(remind_at__isnull=False, reminded_at__isnull=True),
                name="notice_to_remind",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.approval_id or ''}"


class Notification(TenantModel):
    """A notice on its way to one person by one way: their e-mail, or a channel of theirs.

    `claimed_until` is a sender's short right to send it. One that dies after sending and before it noted
    that leaves the claim to lapse, and the message is sent again under the same id.
    """

    id = uuid_key()
    notice = TenantForeignKey(Notice, related_name="notifications")
    project_id = models.UUIDField(null=True)
    subject = models.CharField(max_length=255)
    medium = models.CharField(max_length=16, choices=Medium.choices)
    channel = TenantForeignKey(Channel, null=True, related_name="notifications")
    created_at = models.DateTimeField()

    attempts = models.SmallIntegerField(default=0)
    due_at = models.DateTimeField(null=True)
    claimed_until = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    set_aside_at = models.DateTimeField(null=True)
    dropped_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True, default="")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["notice", "subject", "channel"], nulls_distinct=False, name="notification_once"
            ),
            models.CheckConstraint(
                condition=Q(medium=Medium.EMAIL, channel__isnull=True)
                | Q(medium=Medium.SERVICE, channel__isnull=False),
                name="notification_by_one_way",
            ),
            models.CheckConstraint(
                condition=Q(sent_at__isnull=True, set_aside_at__isnull=True)
                | Q(sent_at__isnull=True, dropped_at__isnull=True)
                | Q(set_aside_at__isnull=True, dropped_at__isnull=True),
                name="notification_one_fate",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant_id", "created_at", "id"], name="notification_by_time"),
            models.Index(fields=["tenant_id", "project_id", "created_at"], name="notification_by_project"),
            models.Index(fields=["tenant_id", "medium", "created_at"], name="notification_by_medium"),
            models.Index(fields=["tenant_id", "subject", "created_at"], name="notification_by_person"),
            models.Index(
                fields=["tenant_id", "created_at"],
                condition=Q(dropped_at__isnull=False),
                name="notification_dropped",
            ),
            models.Index(
                fields=["channel", "created_at"],
                condition=Q(channel__isnull=False),
                name="notification_by_channel",
            ),
            models.Index(
                fields=["created_at"],
                condition=Q(sent_at__isnull=True, set_aside_at__isnull=True, dropped_at__isnull=True),
                name="notification_unsent",
            ),
            models.Index(
                fields=["tenant_id", "-set_aside_at"],
                condition=Q(set_aside_at__isnull=False),
                name="notification_set_aside",
            ),
        ]

    def __str__(self) -> str:
        return f"to {self.subject}"

    @property
    def state(self) -> NotificationState:
        if self.sent_at is not None:
            return NotificationState.SENT
        if self.dropped_at is not None:
            return NotificationState.DROPPED
        return NotificationState.SET_ASIDE if self.set_aside_at is not None else NotificationState.WAITING

    def claim(self, *, until: datetime) -> None:
        """Begin an attempt, which counts from here: a sender that dies has made one too."""
        self.attempts += 1
        self.claimed_until = until

    def arrive(self, *, at: datetime) -> None:
        self.sent_at, self.claimed_until, self.error = at, None, ""

    def fail(self, *, at: datetime, error: str, due_at: datetime | None) -> None:
        """Tried again at `due_at`; without one it is set aside for a person."""
        self.claimed_until, self.error, self.due_at = None, error, due_at
        self.set_aside_at = at if due_at is None else None

    def drop(self, *, at: datetime, why: str) -> None:
        """It is worth nothing to anybody any more."""
        self.dropped_at, self.claimed_until, self.error = at, None, why

    def offer_again(self) -> None:
        self.set_aside_at, self.due_at, self.attempts = None, None, 0
