"""Telling people that they are waited for: by e-mail, and by the services that they name."""

from importlib import import_module

from factory.apps import BaseAppConfig


class NotificationsConfig(BaseAppConfig):
    name = "notifications"
    default = True

    def ready(self) -> None:
        super().ready()
        import_module("notifications.channels.checks")
