"""The Celery application and its schedule. Beat only ticks; what is due, each tick asks the database."""

import os
from typing import Any

from celery import Celery
from celery.schedules import crontab
from celery.signals import setup_logging

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("FACTORY_PROCESS", "job")

app = Celery("factory")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect  # type: ignore[untyped-decorator]
def keep_our_logging(**_: Any) -> None:
    """Celery would put its own format over the settings' one."""


def every(line: str) -> crontab:
    """The schedule of a cron line, as reconcilers state theirs."""
    minute, hour, day, month, weekday = line.split()
    return crontab(minute=minute, hour=hour, day_of_month=day, month_of_year=month, day_of_week=weekday)
