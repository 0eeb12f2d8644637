"""The composition root as an app, for its commands: `up` and `demo` know every part of the product."""

from django.apps import AppConfig


class CompositionConfig(AppConfig):
    name = "config"
