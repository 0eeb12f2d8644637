"""The stream process: what workers and watchers hold open."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("FACTORY_PROCESS", "stream")
django.setup()

from factory.evidence.schema.readiness import require_schema  # noqa: E402  it needs the settings
from runs.watch.app import application  # noqa: E402

require_schema()

__all__ = ["application"]
