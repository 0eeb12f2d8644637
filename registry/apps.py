"""Immutable, hashed releases of agent assets."""

from factory.apps import BaseAppConfig


class RegistryConfig(BaseAppConfig):
    name = "registry"
    default = True

    def ready(self) -> None:
        super().ready()
        from approvals.subjects import register
        from registry.subjects import Publication

        register(Publication())
