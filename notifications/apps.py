"""Telling people that they are waited for: by e-mail, and by the services that they name."""

from factory.apps import HouseConfig


class NotificationsConfig(HouseConfig):
    name = "notifications"
    default = True
