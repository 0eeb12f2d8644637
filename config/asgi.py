"""The stream process: what workers and watchers hold open."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("FACTORY_PROCESS", "stream")
django.setup()

from runs.watch.app import application  # noqa: E402  # needs the settings

__all__ = ["application"]
