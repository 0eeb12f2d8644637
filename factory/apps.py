"""The shared kernel: it knows no run, no approval and no budget."""

from importlib import import_module
from importlib.util import find_spec

from django.apps import AppConfig

ROOMS = ("permissions", "events", "handlers", "reconcilers", "invariants", "restore", "retention")
"""Rooms that register something when they are imported. (Each app says `default = True`, because it also
imports `BaseAppConfig`, and Django would not know which of the two to take.)"""


class BaseAppConfig(AppConfig):
    """An app of this house: importing its rooms is what registers their contents."""

    default_auto_field = "django.db.models.BigAutoField"
    default = False  # not an app itself: where it is imported, Django must choose the app's own config

    def __init_subclass__(cls) -> None:
        cls.default = True

    def ready(self) -> None:
        for room in ROOMS:
            name = f"{self.name}.{room}"
            if find_spec(name):
                import_module(name)


REGISTERED = (
    "factory.evidence.anchors.checking",
    "factory.evidence.invariants",
    "factory.evidence.schema_guards",
    "factory.messaging.webhooks.events",
    "factory.messaging.webhooks.invariants",
    "factory.messaging.webhooks.restore",
)
"""What the packages declare when they are imported: invariants, events, what comes back after a restore."""


class FactoryConfig(BaseAppConfig):
    name = "factory"
    default = True

    def ready(self) -> None:
        super().ready()
        for module in REGISTERED:
            import_module(module)
