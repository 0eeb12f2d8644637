"""Idle watchers and pollers in their hundreds on one stream process, which has a few threads.

A thousand watchers and two hundred pollers at FACTORY_FAULT_ROUNDS=4.
"""

import asyncio
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import httpx
import psutil
import pytest

from factory.embedded.system import free_port
from factory.kernel.hints import publish
from tests.faults.rounds import rounds
from tests.support.api import token_of, worker_token
from tests.support.hands import Hand
from tests.support.running import House
from tests.watch.outbox import writing

ROOT = Path(__file__).resolve().parents[2]
WATCHERS, POLLERS = rounds(250), rounds(50)
MOST_THREADS, MOST_GROWN_MB = 40, 150
SOON = 2.0
"""A second, and another one for a machine that has other things to do."""

log = logging.getLogger(__name__)


@pytest.fixture
def process() -> Iterator[tuple[str, psutil.Process]]:
    """The stream process as the product starts it."""
    port = free_port()
    started = subprocess.Popen(
        [sys.executable, "manage.py", "stream", "--port", str(port)],
        cwd=ROOT,
        env={**os.environ, "FACTORY_WEB_THREADS": "8"},
        stderr=subprocess.DEVNULL,
    )
    base, until = f"http://127.0.0.1:{port}", time.monotonic() + 60
    try:
        while True:
            try:
                httpx.get(f"{base}/healthz", timeout=2).raise_for_status()
                break
            except httpx.TransportError:
                assert started.poll() is None
                assert time.monotonic() < until
                time.sleep(0.1)
        yield base, psutil.Process(started.pid)
    finally:
        started.terminate()
        started.wait(20)


class Crowd:
    """All of them in one event loop, over plain connections."""

    def __init__(self, base: str, house: House) -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        self.http = httpx.AsyncClient(base_url=f"{base}/factory", limits=limits, timeout=httpx.Timeout(120))
        self.house = house
        self.watching = 0
        self.seen: list[float] = []
        self.given: list[float] = []
        self.tasks: list[asyncio.Task[None]] = []
        self._few = asyncio.Semaphore(25)

    async def watch(self, token: str) -> None:
        await self._few.acquire()
        headers = {"Authorization": f"Bearer {token}"}
        async with self.http.stream("GET", "/watch", headers=headers) as answer:
            self._few.release()
            assert answer.status_code == 200
            async for line in answer.aiter_lines():
                if line.startswith("id:") and not self.seen:
                    self.watching += 1
                if line.startswith("data:"):
                    self.seen.append(time.monotonic())

    async def poll(self, hand: Hand, token: str) -> None:
        headers = {
            "Authorization": f"Bearer {token}",
            "Factory-Worker-Instance": str(hand.instance),
        }
        while not self.given:
            path = f"/workers/{hand.name}/poll?wait=30"
            answer = await self.http.post(path, json={}, headers=headers)
            assert answer.status_code == 200, answer.text
            if answer.json()["assignments"]:
                self.given.append(time.monotonic())

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.http.aclose()


async def until(check, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


async def until_quiet(seen: psutil.Process, seconds: float) -> None:
    """Wait until the process uses little of its core for a second."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = busy(seen)
        await asyncio.sleep(1)
        if busy(seen) - began < 0.25:
            return


def busy(seen: psutil.Process) -> float:
    times = seen.cpu_times()
    return float(times.user + times.system)


@pytest.mark.slow
def test_watchers_and_pollers_cost_no_thread_each(process, tenant_id: str) -> None:
    base, seen = process
    house = House(tenant_id)
    hands = [Hand(house, f"w{n}", slots=1) for n in range(POLLERS)]
    tokens = [worker_token(hand.subject, pool=house.pool) for hand in hands]
    before, token = seen.memory_info().rss, token_of(house.world.observer)
    asyncio.run(scene(Crowd(base, house), token, list(zip(hands, tokens, strict=True)), seen, before))


async def scene(
    crowd: Crowd, token: str, hands: list[tuple[Hand, str]], seen: psutil.Process, before: int
) -> None:
    house = crowd.house
    crowd.tasks = [asyncio.create_task(crowd.watch(token)) for _ in range(WATCHERS)]
    await until(lambda: crowd.watching == WATCHERS, 400)
    for hand, worker in hands:
        crowd.tasks.append(asyncio.create_task(crowd.poll(hand, worker)))
    await until_quiet(seen, 20)  # every poll has looked, and waits

    began = busy(seen)
    await asyncio.sleep(5)
    idle = (busy(seen) - began) / 5
    threads, grown = seen.num_threads(), (seen.memory_info().rss - before) / 2**20
    log.info("idle: %.2f of a core, %s threads, %.0f MB for %s", idle, threads, grown, WATCHERS + POLLERS)
    assert threads <= MOST_THREADS
    assert grown <= MOST_GROWN_MB
    assert idle < 0.5

    told_at = await asyncio.to_thread(tell, house)
    await until(lambda: len(crowd.seen) >= 1, 5)
    first = crowd.seen[0] - told_at
    await until(lambda: len(crowd.seen) >= WATCHERS, 30)
    log.info("an event: first after %.2f s, all after %.2f s", first, crowd.seen[WATCHERS - 1] - told_at)

    await asyncio.sleep(2)
    await asyncio.to_thread(house.run)
    asked_at = time.monotonic()
    await asyncio.to_thread(publish, "work")
    await until(lambda: bool(crowd.given), 10)
    waited = crowd.given[0] - asked_at
    log.info("a step: offered %.2f s after its hint", waited)
    await crowd.close()
    assert first < SOON
    assert waited < SOON


def tell(house: House) -> float:
    with writing(house.tenant, house.world.project) as writer:
        writer.tell(uuid4(), 1)
    publish("outbox")
    return time.monotonic()
