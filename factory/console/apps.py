"""The console as an app of its own, without tables: its templates, static files and tags live with it."""

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "factory.console"
    label = "console"
