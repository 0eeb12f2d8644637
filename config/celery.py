"""The Celery application and its schedule. Beat only ticks; what is due, each tick asks the database."""

import os
from typing import Any

import django
import structlog
from celery import Celery
from celery.schedules import crontab
from celery.signals import beat_init, setup_logging, worker_init, worker_process_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("FACTORY_PROCESS", "job")
django.setup()

from django.conf import settings  # noqa: E402

from factory.evidence.anchors.taking import take  # noqa: E402
from factory.evidence.retention import purge  # noqa: E402
from factory.evidence.schema.readiness import SchemaDiffers, require_schema  # noqa: E402
from factory.evidence.verification import verify_and_act  # noqa: E402
from factory.kernel.absence import put_off  # noqa: E402
from factory.kernel.reconciling import reconcilers  # noqa: E402  the apps register theirs during setup
from factory.kernel.telemetry import setup  # noqa: E402

log = structlog.get_logger("factory.jobs")

app = Celery("factory")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@app.task(name="factory.reconcile")
def reconcile(*, name: str) -> None:
    """One round of one reconciler. Two at once, or one killed half-way, end in the same state."""
    with put_off("reconcile", reconciler=name):
        reconcilers()[name].run_once()


LONG = {"time_limit": 3 * 3600, "soft_time_limit": 3 * 3600 - 60, "acks_late": False}
"""For what looks at everything. It is taken off the queue at once: a lost one is made up for the next day."""


@app.task(name="factory.verify", **LONG)
def verify() -> None:
    """The auditor, with its consequences."""
    if _given("auditor"):
        verify_and_act()


@app.task(name="factory.anchor", **LONG)
def anchor() -> None:
    """The heads of all chains, signed and put away. A contradiction is an error in the log, and no anchor."""
    if _given("auditor"):
        take()


@app.task(name="factory.purge", **LONG)
def purge_task() -> None:
    """Evidence past its time, if this process was given the role that may remove it."""
    if _given("retention"):
        purge()


def _given(alias: str) -> bool:
    """Tell whether this process was given the role: it may be kept from jobs, and the commands run by
    hand."""
    if str(settings.DATABASES[alias]["HOST"]).endswith(".invalid"):
        log.warning("role_not_given", alias=alias)
        return False
    return True


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


app.conf.beat_schedule |= {
    task.name: {"task": task.name, "schedule": schedule_of(line), "options": {"expires": 3600}}
    for task, line in (
        (anchor, settings.FACTORY_ANCHOR_AT),
        (verify, settings.FACTORY_VERIFY_AT),
        (purge_task, settings.FACTORY_PURGE_AT),
    )
}


@worker_init.connect
@beat_init.connect
def refuse_another_schema(**_: Any) -> None:
    """Celery goes on over a handler's exceptions, but not over this one."""
    try:
        require_schema()
    except SchemaDiffers as fault:
        raise SystemExit(str(fault)) from fault


@worker_process_init.connect
def measure(**_: Any) -> None:
    """In each process of the pool, after it was forked: what is measured is sent by OTLP."""
    setup.start("job")


@setup_logging.connect
def keep_our_logging(**_: Any) -> None:
    """Celery would put its own format over the settings' one."""
