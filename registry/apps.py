"""Immutable, hashed releases of agent assets."""

from factory.apps import register
from factory.kernel.app_config import BaseAppConfig


class RegistryConfig(BaseAppConfig):
    name = "registry"
    default = True

    def ready(self) -> None:
        from approvals.subjects import register as register_subject
        from registry import events, handlers, invariants, permissions, reconcilers, restore, states
        from registry.subjects import Publication

        register(states, events, permissions, handlers, reconcilers, invariants)
        restore.register()
        register_subject(Publication())
