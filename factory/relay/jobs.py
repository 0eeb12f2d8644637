"""Hints to job workers: a message with ids, which may be lost, because the schedule finds the work too."""

import structlog
from celery import current_app

log = structlog.get_logger("factory.relay")


def hint(task: str, **ids: str) -> None:
    """Ask a job worker to look at something now. A broker that is away is only noted."""
    try:
        current_app.send_task(task, kwargs=ids, ignore_result=True, retry=False)
    except Exception as fault:  # whatever the broker's client raises, nothing depends on it
        log.debug("hint_lost", task=task, fault=type(fault).__name__)
