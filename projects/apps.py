"""Tenants, projects, environments and the people in them."""

from factory.apps import HouseConfig


class ProjectsConfig(HouseConfig):
    name = "projects"
