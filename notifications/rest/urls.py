"""The routes of notifications."""

from django.urls import path

from notifications.rest import views

urlpatterns = [
    path("notifications", views.NotificationList.as_view(), name="notifications"),
    path("notifications/preferences", views.Preferences.as_view(), name="notification-preferences"),
    path("notifications/channels", views.ChannelList.as_view(), name="notification-channels"),
    path(
        "notifications/channels/<uuid:channel_id>", views.ChannelDetail.as_view(), name="notification-channel"
    ),
    path(
        "notifications/channels/<uuid:channel_id>/test", views.ChannelTest.as_view(), name="notification-test"
    ),
    path("notifications/<uuid:notification_id>/retry", views.Retry.as_view(), name="notification-retry"),
]
