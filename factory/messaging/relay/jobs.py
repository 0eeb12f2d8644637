"""Hints to job workers: a message with ids, which may be lost, because the schedule finds the work too."""

from functools import cache

import structlog
from celery import Celery

from factory.kernel.hints import broker
from factory.kernel.time_limits import TimeIsUp

log = structlog.get_logger("factory.messaging.relay")


@cache
def _sender() -> Celery:
    """A sender with the product's settings. It knows tasks by name only, so no process has to load them."""
    sender = Celery("factory.hints", set_as_current=False)
    sender.config_from_object("django.conf:settings", namespace="CELERY")
    return sender


def hint(task: str, **ids: str) -> None:
    """Ask a job worker to look at something now. A broker that is away is only noted."""
    try:
        broker().ping()  # fails within a moment where Celery's own client would try for seconds
        _sender().send_task(task, kwargs=ids, ignore_result=True, retry=False)
    except TimeIsUp:
        raise
    except Exception as fault:  # whatever the broker's client raises, nothing depends on it
        log.debug("hint_lost", task=task, fault=type(fault).__name__)
