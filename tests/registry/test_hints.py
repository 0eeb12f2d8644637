"""A submission is told to a job worker at once; whether or not that arrives, the schedule finds it."""

import json
import time

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from factory.kernel.hints import broker
from factory.messaging.relay import jobs
from factory.messaging.relay.delivery import drain
from factory.messaging.relay.destinations import Handlers
from registry.reconcilers import ClosureResolver
from registry.tasks import RESOLVE, resolve_closure


def waiting(task: str = RESOLVE) -> list[dict[str, object]]:
    """The messages for job workers that name a task, with their arguments."""
    found = []
    for raw in broker().lrange("celery", 0, -1):
        message = json.loads(raw)
        if message["headers"]["task"] == task:
            found.append(json.loads(message["headers"]["kwargsrepr"].replace("'", '"')))
    return found


@pytest.mark.requirement("EVT-41", "JOB-01")
def test_a_submission_is_hinted_with_ids_only(r):
    release_id = r.submit()
    drain(Handlers(), r.w.tenant)
    assert {"tenant_id": r.w.tenant, "release_id": str(release_id)} in waiting()
    resolve_closure(tenant_id=r.w.tenant, release_id=str(release_id))
    resolve_closure(tenant_id=r.w.tenant, release_id=str(release_id))
    assert r.view(release_id).hash.startswith("sha256:")


def test_a_broker_that_is_away_delays_a_candidate_and_loses_nothing(r, monkeypatch):
    release_id = r.submit()
    away = redis.Redis.from_url("redis://127.0.0.1:1/0", retry=Retry(NoBackoff(), 0))
    monkeypatch.setattr(jobs, "broker", lambda: away)
    started = time.monotonic()
    drain(Handlers(), r.w.tenant)
    assert time.monotonic() - started < 3
    assert {"tenant_id": r.w.tenant, "release_id": str(release_id)} not in waiting()
    assert ClosureResolver().run_once(r.w.tenant).repaired == 1
    assert r.view(release_id).hash.startswith("sha256:")
