"""Telling people that they are waited for: by e-mail, and by the services that they name."""

from factory.apps import register
from factory.kernel.app_config import BaseAppConfig


class NotificationsConfig(BaseAppConfig):
    name = "notifications"
    default = True

    def ready(self) -> None:
        from notifications import handlers, invariants, permissions, reconcilers, retention
        from notifications.channels import checks  # noqa: F401  Django's own registry of system checks

        register(permissions, handlers, reconcilers, invariants)
        retention.register()
