"""The kernel's own routes: webhooks, consumers, and what was set aside."""

from django.urls import path

from factory.api import subscriptions as views

_HOOK = "subscriptions/webhooks/<uuid:webhook_id>"

urlpatterns = [
    path("subscriptions/webhooks", views.WebhookList.as_view(), name="webhooks"),
    path(_HOOK, views.WebhookDetail.as_view(), name="webhook"),
    path(f"{_HOOK}/disable", views.WebhookDisable.as_view(), name="webhook-disable"),
    path(f"{_HOOK}/enable", views.WebhookEnable.as_view(), name="webhook-enable"),
    path(f"{_HOOK}/rotate-secret", views.WebhookRotate.as_view(), name="webhook-rotate-secret"),
    path(f"{_HOOK}/ping", views.WebhookPing.as_view(), name="webhook-ping"),
    path("events/consumers", views.ConsumerList.as_view(), name="consumers"),
    path("events/set-aside", views.SetAsideList.as_view(), name="set-aside"),
    path("events/<uuid:event_id>/retry", views.EventRetry.as_view(), name="event-retry"),
    path("events/<uuid:event_id>/skip", views.EventSkip.as_view(), name="event-skip"),
]
