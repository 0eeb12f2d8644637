"""Budgets, reservations, the ledger and priced usage."""

from factory.apps import register
from factory.kernel.app_config import BaseAppConfig


class UsageConfig(BaseAppConfig):
    name = "usage"
    default = True

    def ready(self) -> None:
        from usage import events, handlers, invariants, permissions, reconcilers, restore, states

        register(states, events, permissions, handlers, reconcilers, invariants)
        restore.register()
