"""Tenants, projects, environments and the people in them."""

from factory.apps import BaseAppConfig


class ProjectsConfig(BaseAppConfig):
    name = "projects"
    default = True

    def ready(self) -> None:
        super().ready()
        from factory.identity.directory import register_directory
        from projects.selectors.directory import Memberships

        register_directory(Memberships())
