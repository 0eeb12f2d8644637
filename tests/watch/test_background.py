"""The tasks beside the requests are begun again when they end, and `/readyz` knows."""

import asyncio

import httpx
import psycopg
import pytest

from runs.watch import background
from runs.watch.background import Background
from runs.watch.hub import Hub
from tests.kernel.damage import admin_url
from tests.support.api import token_of
from tests.support.running import House
from tests.watch.server import serving
from tests.watch.test_stream import listening


def test_a_task_that_fails_is_begun_again_and_counts_as_failing_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background, "BEGIN_AGAIN_SECONDS", 0.01)
    begun = []

    async def fragile() -> None:
        begun.append(1)
        if len(begun) < 3:
            raise TypeError("a column that nobody knows")
        await asyncio.Event().wait()

    async def sound() -> None:
        await asyncio.Event().wait()

    async def watch() -> tuple[dict[str, str], dict[str, str]]:
        kept = Background({"fragile": fragile, "sound": sound})
        kept.start()
        while len(begun) < 3:
            await asyncio.sleep(0.01)
        during = kept.checks()
        monkeypatch.setattr(background, "TRUSTED_AFTER_SECONDS", 0.0)
        after = kept.checks()
        await kept.stop()
        return during, after

    during, after = asyncio.run(watch())
    assert during == {"fragile": "failing", "sound": "ok"}
    assert after == {"fragile": "ok", "sound": "ok"}


def test_a_task_that_ends_without_a_fault_is_begun_again_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "BEGIN_AGAIN_SECONDS", 0.01)
    begun = []

    async def short() -> None:
        begun.append(1)

    async def watch() -> dict[str, str]:
        kept = Background({"short": short})
        kept.start()
        while len(begun) < 3:
            await asyncio.sleep(0.01)
        checks = kept.checks()
        await kept.stop()
        return checks

    assert asyncio.run(watch()) == {"short": "failing"}


def test_a_stream_process_that_cannot_tell_its_watchers_anything_is_not_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def broken(hub: Hub) -> None:
        raise TypeError("unexpected keyword argument 'newer'")

    with serving() as base:
        assert httpx.get(f"{base}/readyz").status_code == 200
    monkeypatch.setattr(Hub, "run", broken)
    with serving() as base:
        unready = httpx.get(f"{base}/readyz")
        assert (unready.status_code, unready.json()["status"]) == (503, "not ready")
        assert unready.json()["checks"]["watching"] == "failing"
        assert httpx.get(f"{base}/healthz").status_code == 200


def test_watchers_are_told_although_a_newer_release_has_added_a_column(
    own_database: str, tenant_id: str
) -> None:
    house = House(tenant_id)
    with psycopg.connect(admin_url()) as db:
        db.execute("ALTER TABLE factory_outboxevent ADD COLUMN newer text NOT NULL DEFAULT ''")
    token = token_of(house.world.requester)
    with serving() as base, listening(base, token) as listener:
        run_id = house.run("single")
        listener.wait(lambda each: each.events)
        last = listener.last
        resumed = house.run("single")
        with listening(base, token, last=last) as again:
            again.wait(lambda each: str(resumed) in str(each.events))
        assert str(run_id) in str(listener.events)
