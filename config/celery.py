"""The Celery application and its schedule. Beat only ticks; what is due, each tick asks the database."""

import os
from typing import Any

import django
from celery import Celery
from celery.schedules import crontab
from celery.signals import setup_logging

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("FACTORY_PROCESS", "job")
django.setup()

from factory.reconciling import reconcilers  # noqa: E402  the apps register theirs during setup

app = Celery("factory")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@app.task(name="factory.reconcile")
def reconcile(*, name: str) -> None:
    """One round of one reconciler. Two at once, or one killed half-way, end in the same state."""
    reconcilers()[name].run_once()


def schedule_of(line: str) -> crontab:
    """The schedule of a cron line, as each reconciler states its own."""
    minute, hour, day, month, weekday = line.split()
    return crontab(minute=minute, hour=hour, day_of_month=day, month_of_year=month, day_of_week=weekday)


app.conf.beat_schedule = {
    name: {
        "task": reconcile.name,
        "schedule": schedule_of(each.every),
        "kwargs": {"name": name},
        # A tick that nobody took before the next one is due is worth nothing any more.
        "options": {"expires": 60},
    }
    for name, each in sorted(reconcilers().items())
}


@setup_logging.connect
def keep_our_logging(**_: Any) -> None:
    """Celery would put its own format over the settings' one."""
