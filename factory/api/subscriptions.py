"""Webhooks and consumers over HTTP: parse, call one command, translate."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from factory.api.etags import with_etag
from factory.api.idempotency import ONCE
from factory.api.pages import limit_of, page
from factory.api.subscription_bodies import (
    ChangedWebhookBody,
    ConsumerBody,
    NewWebhookBody,
    RetryBody,
    SetAsideBody,
    WebhookBody,
    WebhookReasonBody,
    WebhookWithSecretBody,
)
from factory.api.views import BaseView
from factory.kernel import clock
from factory.kernel.errors import NotFound
from factory.kernel.models import WebhookSubscription
from factory.messaging.consumers import consumers, retry_delivery, set_aside, skip_delivery, webhooks_of
from factory.messaging.webhooks.commands import (
    change_webhook,
    create_webhook,
    disable_webhook,
    enable_webhook,
    ping_webhook,
    rotate_secret,
)
from factory.messaging.webhooks.signing import new_secret


class WebhooksView(BaseView):
    """Base: finds what the caller's scope includes, and runs a command once."""

    def own(self, webhook_id: UUID) -> WebhookSubscription:
        row = webhooks_of(self.ctx).filter(pk=webhook_id).first()
        if row is None:
            raise NotFound("There is no such webhook here.")
        return row

    def shown(self, webhook_id: Any, headers: dict[str, str], status: int = 200) -> Response:
        with self.reading():
            return Response(WebhookBody(self.own(UUID(str(webhook_id)))).data, status, headers=headers)

    def with_secret(
        self, webhook_id: Any, secret: str, headers: dict[str, str], status: int = 200
    ) -> Response:
        """The one answer that holds a secret; a replay of it does not."""
        answer = self.shown(webhook_id, headers, status)
        answer.data = {**answer.data, "secret": None if headers else secret}
        return answer


class WebhookList(WebhooksView):
    operation = {"GET": "ListWebhooks", "POST": "CreateWebhook"}

    @extend_schema(summary="List webhooks", responses=WebhookBody(many=True))
    def get(self, request: Request) -> Response:
        """The subscriptions of the token's project, or of the whole tenant; newest first."""
        with self.reading():
            rows = webhooks_of(self.ctx)
            return Response(page(rows, request, render=lambda row: WebhookBody(row).data))

    @extend_schema(
        summary="Create a webhook",
        parameters=[ONCE],
        request=NewWebhookBody,
        responses={201: WebhookWithSecretBody},
    )
    def post(self, request: Request) -> Response:
        """Subscribe an endpoint. The secret is in this answer and in no other."""
        body, secret = NewWebhookBody.parse(request.data), new_secret()
        made, headers = self.do(request, create_webhook, **body, secret=secret)
        return self.with_secret(made, secret, headers, 201)


class WebhookDetail(WebhooksView):
    operation = {"GET": "ListWebhooks", "PATCH": "ChangeWebhook"}

    @extend_schema(summary="Read a webhook", responses=WebhookBody)
    def get(self, request: Request, webhook_id: UUID) -> Response:
        """One subscription and how its endpoint has been doing."""
        with self.reading():
            row = self.own(webhook_id)
        return with_etag(request, WebhookBody(row).data, row.id, row.version)

    @extend_schema(summary="Change a webhook", request=ChangedWebhookBody, responses=WebhookBody)
    def patch(self, request: Request, webhook_id: UUID) -> Response:
        """Other events, or another place; what waits goes to the new place."""
        body = ChangedWebhookBody.parse(request.data)
        change_webhook(self.ctx, webhook_id=webhook_id, **body)
        return self.shown(webhook_id, {})


@extend_schema(
    summary="Disable a webhook", parameters=[ONCE], request=WebhookReasonBody, responses=WebhookBody
)
class WebhookDisable(WebhooksView):
    """Send nothing more; what waits is kept."""

    operation = {"POST": "DisableWebhook"}

    def post(self, request: Request, webhook_id: UUID) -> Response:
        reason = WebhookReasonBody.parse(request.data)["reason"]
        _, headers = self.do(request, disable_webhook, webhook_id=webhook_id, reason=reason)
        return self.shown(webhook_id, headers)


@extend_schema(summary="Enable a webhook", parameters=[ONCE], request=None, responses=WebhookBody)
class WebhookEnable(WebhooksView):
    """Send again, beginning with what has waited."""

    operation = {"POST": "EnableWebhook"}

    def post(self, request: Request, webhook_id: UUID) -> Response:
        _, headers = self.do(request, enable_webhook, webhook_id=webhook_id)
        return self.shown(webhook_id, headers)


@extend_schema(summary="Make a new secret", parameters=[ONCE], request=None, responses=WebhookWithSecretBody)
class WebhookRotate(WebhooksView):
    """A new secret, shown once; for a day the old one signs too."""

    operation = {"POST": "RotateWebhookSecret"}

    def post(self, request: Request, webhook_id: UUID) -> Response:
        secret = new_secret()
        _, headers = self.do(request, rotate_secret, webhook_id=webhook_id, secret=secret)
        return self.with_secret(webhook_id, secret, headers)


@extend_schema(summary="Send a ping", parameters=[ONCE], request=None, responses={202: WebhookBody})
class WebhookPing(WebhooksView):
    """Send the endpoint one event that says nothing but that it arrived."""

    operation = {"POST": "PingWebhook"}

    def post(self, request: Request, webhook_id: UUID) -> Response:
        _, headers = self.do(request, ping_webhook, webhook_id=webhook_id)
        return self.shown(webhook_id, headers, 202)


class ConsumerList(WebhooksView):
    operation = {"GET": "ListConsumers"}

    @extend_schema(summary="List consumers of events", responses=ConsumerBody(many=True))
    def get(self, request: Request) -> Response:
        """List who is told of events, how far behind each is, and who is known but has not subscribed."""
        with self.reading():
            items = [ConsumerBody(each).data for each in consumers(self.ctx)]
            return Response({"items": items, "next": None, "asOf": clock.now()})


class SetAsideList(WebhooksView):
    operation = {"GET": "ListConsumers"}

    @extend_schema(summary="List set-aside events", responses=SetAsideBody(many=True))
    def get(self, request: Request) -> Response:
        """List what a consumer did not take after all its attempts, with the reason; oldest first."""
        with self.reading():
            items = [SetAsideBody(each).data for each in set_aside(self.ctx, limit_of(request))]
            return Response({"items": items, "next": None, "asOf": clock.now()})


@extend_schema(
    summary="Offer a set-aside event again", parameters=[ONCE], request=RetryBody, responses={202: None}
)
class EventRetry(WebhooksView):
    """Offer it to its consumer again, with all its attempts before it."""

    operation = {"POST": "RetryDelivery"}

    def post(self, request: Request, event_id: UUID) -> Response:
        body = RetryBody.parse(request.data)
        hook = body.pop("webhook_id")
        _, headers = self.do(request, retry_delivery, event_id=event_id, webhook_id=hook, **body)
        return Response(status=202, headers=headers)


@extend_schema(summary="Skip a set-aside event", parameters=[ONCE], request=RetryBody, responses={202: None})
class EventSkip(WebhooksView):
    """Go past it for good: its consumer never gets it, and what waits behind it goes on."""

    operation = {"POST": "SkipDelivery"}

    def post(self, request: Request, event_id: UUID) -> Response:
        body = RetryBody.parse(request.data)
        hook = body.pop("webhook_id")
        _, headers = self.do(request, skip_delivery, event_id=event_id, webhook_id=hook, **body)
        return Response(status=202, headers=headers)
