"""Immutable, hashed releases of agent assets."""

from factory.apps import HouseConfig


class RegistryConfig(HouseConfig):
    name = "registry"
    default = True
