"""Job workers that are killed in the middle: what the broker loses, the database still knows."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest

from factory.kernel.models import JournalEntry
from factory.kernel.tenancy import reading
from factory.messaging.relay.jobs import hint
from runs.reconcilers import LeaseExpiryReconciler
from tests.faults.rounds import rounds
from tests.support.running import House


@contextmanager
def job_worker() -> Iterator["subprocess.Popen[bytes]"]:
    """A Celery worker of the product, in a process group of its own."""
    command = [sys.executable, "-m", "celery", "-A", "config.celery", "worker", "-c", "2", "-l", "ERROR"]
    command += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    process = subprocess.Popen(
        command,
        env=os.environ | {"FACTORY_PROCESS": "job", "DJANGO_SETTINGS_MODULE": "tests.settings"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)


def lapsed(house: House, number: int) -> set[UUID]:
    worker, found = house.hand(slots=number), set()
    for _ in range(number):
        house.run("single")
    for work in worker.poll():
        worker.acquire(work)
        house.let_lapse(work.lease_id)
        found.add(UUID(str(work.lease_id)))
    return found


def expired(house: House) -> Counter[UUID]:
    with reading(house.system):
        rows = JournalEntry.objects.filter(entity="lease", to_state="Expired")
        return Counter(rows.values_list("entity_id", flat=True))


def tick(times: int) -> None:
    for _ in range(times):
        hint("factory.reconcile", name=LeaseExpiryReconciler.name)


@pytest.mark.requirement("FLR-08", "JRN-11")
def test_job_workers_that_are_killed_lose_messages_and_no_work(house: House) -> None:
    """Killed as soon as one has begun on what is due; the next round of anybody repairs the rest, once."""
    due: set[UUID] = set()
    for _ in range(rounds(2)):
        due |= lapsed(house, 40)
        before = len(expired(house))
        with job_worker() as process:
            ends = time.monotonic() + 120
            while len(expired(house)) == before:
                tick(1)
                assert process.poll() is None, "the job worker ended"
                assert time.monotonic() < ends, "the job worker never began"
                time.sleep(0.1)
            os.killpg(process.pid, signal.SIGKILL)
    killed_at = len(expired(house))
    LeaseExpiryReconciler().run_once(house.tenant)
    print(f"{killed_at} of {len(due)} were done when it was killed")  # noqa: T201
    assert expired(house) == Counter(due), "each once, and none left"
