"""What goes over the wire about notifications, and what is accepted."""

from typing import Any

from rest_framework import serializers

from factory.api.serializers import Flag, Identifier, StrictSerializer, TextField, TimeField, Whole, WordField
from notifications.channels.services import LONGEST
from notifications.states import CHOOSABLE, Kind, Medium, NotificationState


class Kinds(serializers.ListField):
    """List the kinds of message that somebody wants."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=WordField(choices=CHOOSABLE), max_length=len(CHOOSABLE), **options)


class PreferencesBody(StrictSerializer):
    """Show what the caller gets by e-mail in this tenant. Version 0: they never chose."""

    kinds = Kinds()
    version = Whole()
    emailIsSent = Flag(read_only=True, help_text="Whether the installation sends e-mail at all.")


class ChangedPreferencesBody(StrictSerializer):
    """The whole choice, and the version on which it was made."""

    kinds = Kinds()
    version = Whole()


class ChannelBody(StrictSerializer):
    """A channel of the caller's. Its address is never shown: it holds a secret."""

    channelId = Identifier(source="id")
    name = TextField(max_length=80)
    service = TextField(max_length=32)
    kinds = Kinds()
    version = Whole()
    createdAt = TimeField(source="created_at")
    updatedAt = TimeField(source="updated_at")


class NewChannelBody(StrictSerializer):
    """A service's address in the form of the Apprise library, without options."""

    name = TextField(max_length=80)
    address = TextField(max_length=LONGEST)
    kinds = Kinds(required=False, default=lambda: list(CHOOSABLE))


class ChangedChannelBody(StrictSerializer):
    """The channel as it shall be, and the version on which that was decided."""

    name = TextField(max_length=80)
    kinds = Kinds()
    version = Whole()


class NotificationBody(StrictSerializer):
    """A message to somebody, and how it fares."""

    notificationId = Identifier(source="id")
    kind = WordField(choices=Kind.choices, source="notice.kind")
    approvalId = Identifier(source="notice.approval_id", allow_null=True)
    projectId = Identifier(source="project_id", allow_null=True)
    subject = TextField()
    medium = WordField(choices=Medium.choices)
    state = WordField(choices=NotificationState.choices)
    attempts = Whole()
    nextTryAt = TimeField(source="due_at", allow_null=True)
    sentAt = TimeField(source="sent_at", allow_null=True)
    setAsideAt = TimeField(source="set_aside_at", allow_null=True)
    lastError = TextField(source="error", max_length=500)
    createdAt = TimeField(source="created_at")


class NotificationQuery(StrictSerializer):
    state = WordField(choices=NotificationState.choices, required=False)


class RetryNotificationBody(StrictSerializer):
    """Say why it will arrive now."""

    reason = TextField(max_length=2000)
