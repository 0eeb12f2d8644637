"""The loop of the reference worker: register, poll, work, drain."""

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from runs.worker.attempt import DRAINING, AttemptRunner
from runs.worker.client import WorkerClient
from runs.worker.errors import ApiForbidden, ApiNotFound, ApiRefused, Superseded, Unauthorized, Unreachable
from runs.worker.release import ReleaseStore
from runs.worker.wire import Assignment

log = logging.getLogger("factory.worker")

VERSION = "0.1.0"
LONGEST_PAUSE = 15.0


@dataclass(frozen=True)
class WorkerOptions:
    """Hold what a worker is started with."""

    cache: Path
    capabilities: Sequence[str] = ("*/*",)
    max_concurrency: int = 2
    poll_seconds: int = 25
    drain_seconds: float = 20.0


class WorkerRuntime:
    """Holds nothing that must survive: what it was doing when it died, the control plane settles."""

    def __init__(self, client: WorkerClient, options: WorkerOptions) -> None:
        self._client = client
        self._options = options
        self._releases = ReleaseStore(client, options.cache)
        self._stopping = threading.Event()
        self._freed = threading.Event()
        self._lock = threading.Lock()
        self._active: dict[tuple[str, int], tuple[AttemptRunner, threading.Thread]] = {}

    def stop(self) -> None:
        """Ask for no more work; `run` then finishes what is in hand. Safe in a signal handler."""
        self._stopping.set()
        self._freed.set()

    def run(self) -> int:
        """Work until told to stop, and drain, whatever ended it. 0 after a drain, 1 when it is not wanted."""
        if not self._register():
            return 0
        wanted = True
        try:
            self._serve()
            return 0
        except Superseded:
            wanted = False
            log.error("another process registered as %s: this one stops", self._client.name)
            return 1
        except ApiForbidden as fault:
            # A pool that is not there, or a token for something else: asking again changes nothing.
            wanted = False
            log.error("not taken as a worker: %s; this one stops", fault)
            return 1
        finally:
            self._finish(self._options.drain_seconds, announce=wanted)

    def _serve(self) -> None:
        """Poll and start work until told to stop. Raises what is a refusal for good."""
        failures = 0
        while not self._stopping.is_set():
            try:
                if self._has_room():
                    self._poll()
                failures = 0
            except (Superseded, ApiForbidden):
                raise
            except ApiNotFound:
                self._register()
            except (Unreachable, ApiRefused) as fault:
                failures = self._back_off(failures, fault)
            except Exception as fault:
                log.exception("a fault while it polled")
                failures = self._back_off(failures, fault)

    def _register(self) -> bool:
        """Until it succeeds or the worker is told to stop. A refusal for good (403) is raised."""
        failures = 0
        while not self._stopping.is_set():
            try:
                self._client.register(self._options.capabilities, self._options.max_concurrency, VERSION)
                log.info("registered as %s, %s at once", self._client.name, self._options.max_concurrency)
                return True
            except (Unreachable, Unauthorized, ApiNotFound) as fault:
                failures = self._back_off(failures, fault)
        return False

    def _back_off(self, failures: int, fault: Exception) -> int:
        pause = random.uniform(0.5, 1.0) * min(LONGEST_PAUSE, 0.25 * 2.0 ** min(failures, 8))
        log.warning("%s; again in %.1f s", fault, pause)
        self._stopping.wait(pause)
        return failures + 1

    def _has_room(self) -> bool:
        """Below its concurrency; else wait for a slot. Renewals are the heartbeat meanwhile."""
        self._freed.clear()
        with self._lock:
            full = len(self._active) >= self._options.max_concurrency
        if full:
            self._freed.wait(1.0)
        return not full and not self._stopping.is_set()

    def _poll(self) -> None:
        with self._lock:
            busy = bool(self._active)
        # While something is running, a shorter wait lets a freed slot be offered soon.
        longest = self._options.poll_seconds
        for work in self._client.poll(min(longest, 5) if busy else longest):
            self._start(work)

    def _start(self, work: Assignment) -> None:
        key = (work.attempt_id, work.fencing_token)
        with self._lock:
            if key in self._active:  # an answer that was lost on the way is given again
                return
            runner = AttemptRunner(work, self._client, self._releases)
            thread = threading.Thread(
                target=self._work, args=(key, runner), name=f"attempt-{work.attempt_id}", daemon=True
            )
            self._active[key] = (runner, thread)
        log.info("attempt %s (%s, token %s) starts", work.attempt_id, work.skill_id, work.fencing_token)
        thread.start()

    def _work(self, key: tuple[str, int], runner: AttemptRunner) -> None:
        try:
            runner.run()
        except Exception:
            log.exception("attempt %s ended without an outcome", key[0])
        finally:
            with self._lock:
                self._active.pop(key, None)
            self._freed.set()

    def _finish(self, seconds: float, *, announce: bool) -> None:
        """Let what is in hand end by itself, then hand it back."""
        if announce:
            _log_failure(self._client.drain)
        self._wait(time.monotonic() + seconds)
        with self._lock:
            left = list(self._active.values())
        for runner, _ in left:
            runner.interrupt.set(DRAINING)
        self._wait(time.monotonic() + 5.0)
        log.info("stopped, %s left behind", len(self._active))

    def _wait(self, until: float) -> None:
        with self._lock:
            threads = [thread for _, thread in self._active.values()]
        for thread in threads:
            thread.join(timeout=max(0.0, until - time.monotonic()))


def _log_failure(call: Callable[[], None]) -> None:
    try:
        call()
    except Exception as fault:  # whatever it is, what is in hand is finished
        log.warning("drain was not announced: %s", fault)
