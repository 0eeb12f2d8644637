"""Immutable, hashed releases of agent assets."""

from factory.apps import BaseAppConfig


class RegistryConfig(BaseAppConfig):
    name = "registry"
    default = True
