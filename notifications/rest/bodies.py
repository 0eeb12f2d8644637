"""What goes over the wire about notifications, and what is accepted."""

from typing import Any

from rest_framework import serializers

from factory.api.serializers import Choice, Flag, Identifier, Moment, StrictSerializer, Text, Whole
from notifications.channels.services import LONGEST
from notifications.states import CHOOSABLE, Fate, Kind, Medium


class Kinds(serializers.ListField):
    """What somebody wants to be told of."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=Choice(choices=CHOOSABLE), max_length=len(CHOOSABLE), **options)


class PreferencesBody(StrictSerializer):
    """What the caller is told by e-mail in this tenant. Version 0: they never chose."""

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
    name = Text(max_length=80)
    service = Text(max_length=32)
    kinds = Kinds()
    version = Whole()
    createdAt = Moment(source="created_at")
    updatedAt = Moment(source="updated_at")


class NewChannelBody(StrictSerializer):
    """A service's address in the form of the Apprise library, without options."""

    name = Text(max_length=80)
    address = Text(max_length=LONGEST)
    kinds = Kinds(required=False, default=lambda: list(CHOOSABLE))


class ChangedChannelBody(StrictSerializer):
    """The channel as it shall be, and the version on which that was decided."""

    name = Text(max_length=80)
    kinds = Kinds()
    version = Whole()


class NotificationBody(StrictSerializer):
    """A message to somebody, and how it fares."""

    notificationId = Identifier(source="id")
    kind = Choice(choices=Kind.choices, source="notice.kind")
    approvalId = Identifier(source="notice.approval_id", allow_null=True)
    projectId = Identifier(source="project_id", allow_null=True)
    subject = Text()
    medium = Choice(choices=Medium.choices)
    state = Choice(choices=Fate.choices, source="fate")
    attempts = Whole()
    nextTryAt = Moment(source="due_at", allow_null=True)
    sentAt = Moment(source="sent_at", allow_null=True)
    setAsideAt = Moment(source="set_aside_at", allow_null=True)
    lastError = Text(source="error", max_length=500)
    createdAt = Moment(source="created_at")


class NotificationQuery(StrictSerializer):
    state = Choice(choices=Fate.choices, required=False)


class RetryNotificationBody(StrictSerializer):
    """Why it will arrive now."""

    reason = Text(max_length=2000)
