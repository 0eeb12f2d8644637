"""A surface for each test, and a worker at its door."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runs.worker.client import WorkerClient
from runs.worker.runtime import WorkerOptions, WorkerRuntime
from tests.worker.surface import Surface


@pytest.fixture
def surface() -> Iterator[Surface]:
    made = Surface()
    yield made
    made.close()


@pytest.fixture
def client(surface: Surface) -> Iterator[WorkerClient]:
    made = WorkerClient(surface.url, lambda: "token", "w1", sleep=lambda seconds: None, patience=5.0)
    yield made
    made.close()


@pytest.fixture
def started(surface: Surface, tmp_path: Path) -> Iterator[Callable[..., WorkerRuntime]]:
    """Starts a worker; it is drained at the end of the test."""
    running: list[tuple[WorkerRuntime, threading.Thread, WorkerClient]] = []

    def start(**options: float | int) -> WorkerRuntime:
        client = WorkerClient(surface.url, lambda: "token", "w1", patience=5.0)
        worker = WorkerRuntime(client, WorkerOptions(cache=tmp_path / "cache", poll_seconds=1, **options))  # type: ignore[arg-type]
        thread = threading.Thread(target=worker.run, daemon=True)
        thread.start()
        running.append((worker, thread, client))
        return worker

    yield start
    for worker, thread, client in running:
        worker.stop()
        thread.join(15)
        client.close()
        assert not thread.is_alive()
