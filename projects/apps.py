"""Tenants, projects, environments and the people in them."""

from factory.apps import register
from factory.kernel.app_config import BaseAppConfig


class ProjectsConfig(BaseAppConfig):
    name = "projects"
    default = True

    def ready(self) -> None:
        from factory.identity.directory import register_directory
        from projects import events, invariants, permissions, reconcilers, restore, states
        from projects.selectors.directory import Memberships

        register(states, events, permissions, reconcilers, invariants)
        restore.register()
        register_directory(Memberships())
