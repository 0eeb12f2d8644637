"""Notifications over HTTP: parse, call one command, translate."""

from uuid import UUID

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from factory.api.idempotency import ONCE
from factory.api.pages import page
from factory.api.views import BaseView
from factory.kernel import clock
from factory.kernel.errors import NotFound
from notifications.commands import (
    add_channel,
    change_channel,
    change_preference,
    remove_channel,
    retry_notification,
    send_test,
)
from notifications.rest.bodies import (
    ChangedChannelBody,
    ChangedPreferencesBody,
    ChannelBody,
    NewChannelBody,
    NotificationBody,
    NotificationQuery,
    PreferencesBody,
    RetryNotificationBody,
)
from notifications.selectors import STATE_FILTERS, channels_of, kinds_by_email, notifications_of
from notifications.states import NotificationState


class OwnView(BaseView):
    """Base: a caller's own ways of being told."""

    def preferences(self) -> Response:
        with self.reading():
            kinds, version = kinds_by_email(self.ctx.actor.subject)
        sent = {"kinds": kinds, "version": version, "emailIsSent": settings.FACTORY_EMAIL_ON}
        return Response(PreferencesBody(sent).data)

    def channel(self, channel_id: UUID, headers: dict[str, str], status: int = 200) -> Response:
        with self.reading():
            row = channels_of(self.ctx.actor.subject).filter(pk=channel_id).first()
        if row is None:
            raise NotFound("You have no such channel here.")
        return Response(ChannelBody(row).data, status, headers=headers)


class Preferences(OwnView):
    operation = {"GET": "ReadOwnNotifications", "PUT": "ChangeOwnNotifications"}

    @extend_schema(summary="Read what I am told by e-mail", responses=PreferencesBody)
    def get(self, request: Request) -> Response:
        """Return the caller's choice in this tenant; who never chose gets all that concerns them."""
        return self.preferences()

    @extend_schema(
        summary="Choose what I am told by e-mail", request=ChangedPreferencesBody, responses=PreferencesBody
    )
    def put(self, request: Request) -> Response:
        """Replace the choice as a whole."""
        change_preference(self.ctx, **ChangedPreferencesBody.parse(request.data))
        return self.preferences()


class ChannelList(OwnView):
    operation = {"GET": "ReadOwnNotifications", "POST": "AddChannel"}

    @extend_schema(summary="List my channels", responses=ChannelBody(many=True))
    def get(self, request: Request) -> Response:
        """Return the caller's own; nobody lists another's."""
        with self.reading():
            rows = channels_of(self.ctx.actor.subject).order_by("created_at")
            items = [ChannelBody(row).data for row in rows]
            return Response({"items": items, "next": None, "asOf": clock.now()})

    @extend_schema(
        summary="Add a channel", parameters=[ONCE], request=NewChannelBody, responses={201: ChannelBody}
    )
    def post(self, request: Request) -> Response:
        """Add a channel. The address is sealed, and no answer ever shows it."""
        channel_id, headers = self.do(request, add_channel, **NewChannelBody.parse(request.data))
        return self.channel(UUID(channel_id), headers, 201)


class ChannelDetail(OwnView):
    operation = {"PATCH": "ChangeChannel", "DELETE": "RemoveChannel"}

    @extend_schema(summary="Change a channel", request=ChangedChannelBody, responses=ChannelBody)
    def patch(self, request: Request, channel_id: UUID) -> Response:
        """Another name, or other things to be told of."""
        change_channel(self.ctx, channel_id=channel_id, **ChangedChannelBody.parse(request.data))
        return self.channel(channel_id, {})

    @extend_schema(summary="Remove a channel", responses={204: None})
    def delete(self, request: Request, channel_id: UUID) -> Response:
        """Nothing more is sent there, and the address is forgotten."""
        remove_channel(self.ctx, channel_id=channel_id)
        return Response(status=204)


@extend_schema(summary="Send a test", parameters=[ONCE], request=None, responses={202: ChannelBody})
class ChannelTest(OwnView):
    """Send a message by a channel that says nothing but that it arrived."""

    operation = {"POST": "TestChannel"}

    def post(self, request: Request, channel_id: UUID) -> Response:
        _, headers = self.do(request, send_test, channel_id=channel_id)
        return self.channel(channel_id, headers, 202)


class NotificationList(BaseView):
    operation = {"GET": "ListNotifications"}

    @extend_schema(
        summary="List notifications", parameters=[NotificationQuery], responses=NotificationBody(many=True)
    )
    def get(self, request: Request) -> Response:
        """Messages to people of the scope, newest first, and how each fares."""
        query = NotificationQuery.parse_query(request)
        with self.reading():
            rows = notifications_of(self.ctx)
            if "state" in query:
                rows = rows.filter(**STATE_FILTERS[NotificationState(query["state"])])
            return Response(page(rows, request, render=lambda row: NotificationBody(row).data))


@extend_schema(
    summary="Send a notification again",
    parameters=[ONCE],
    request=RetryNotificationBody,
    responses={202: NotificationBody},
)
class Retry(BaseView):
    """Offer a message again that was set aside after its tries."""

    operation = {"POST": "RetryNotification"}

    def post(self, request: Request, notification_id: UUID) -> Response:
        reason = RetryNotificationBody.parse(request.data)["reason"]
        _, headers = self.do(request, retry_notification, notification_id=notification_id, reason=reason)
        with self.reading():
            row = notifications_of(self.ctx).get(pk=notification_id)
            return Response(NotificationBody(row).data, 202, headers=headers)
