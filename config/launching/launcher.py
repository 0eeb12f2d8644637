"""The launcher: servers, tables, processes, people; then a guided run; then wait for Ctrl-C."""

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import httpx

from config.launching import ports
from config.launching.lock import LauncherLock
from config.launching.options import LaunchOptions
from config.launching.processes import PYTHON, Plan
from config.launching.servers import Servers, short
from config.launching.supervisor import Supervisor, die_with
from config.launching.terminal import Terminal
from factory.embedded.system import EmbeddedError

READY_SECONDS = 60.0
TICK_SECONDS = 0.1
SLOW_SECONDS = 3.0
TABLES_TAKE_A_WHILE = "The tables are being brought up to date, which takes up to a minute the first time."

Tour = Callable[["Installation"], int]
"""What is done once all is up; runs in a thread of its own, and returns the exit code."""


@dataclass(frozen=True)
class Installation:
    """A running product, as the tour sees it."""

    options: LaunchOptions
    plan: Plan
    world: dict[str, Any]
    terminal: Terminal
    stopping: threading.Event
    result: dict[str, Any] = field(default_factory=dict)
    """What the tour found, for the last line of `demo`."""


def format_mail(environment: Mapping[str, str]) -> str:
    """Return how people are told of requests: by which mail server, or by none."""
    host = environment.get("FACTORY_EMAIL_HOST", "").strip()
    if host:
        return f"through {host}:{environment.get('FACTORY_EMAIL_PORT', '587')}"
    return "none is sent, FACTORY_EMAIL_HOST names no mail server"


class LaunchInterrupted(Exception):
    """Ctrl-C before everything was up."""


class Launcher:
    """Brings everything up, watches over it, and takes everything down again, whatever happens."""

    def __init__(self, options: LaunchOptions, terminal: Terminal) -> None:
        self.options, self.terminal = options, terminal
        self._stopping = threading.Event()
        self.result: dict[str, Any] = {}

    def run(self, tour: Tour, *, stay: bool) -> int:
        """Exit code: 0 after Ctrl-C or a tour that succeeded, otherwise the tour's."""
        with LauncherLock(self.options.home) as lock, self._signals():
            servers = Servers(self.options.home)
            supervisor = Supervisor(
                self.options.root, self.options.home / "log",
                say=self.terminal.note, include=servers.keeper.include,
            )  # fmt: skip
            try:
                installation = self._bring_up(servers, supervisor)
                lock.note(installation.plan.web_url + "/admin/")
                self.result = installation.result
                return self._watch_over(supervisor, servers, tour, installation, stay=stay)
            except LaunchInterrupted:
                return 130
            finally:
                self._take_down(supervisor, servers)

    def _bring_up(self, servers: Servers, supervisor: Supervisor) -> Installation:
        found = servers.start()
        for line in servers.lines:
            self.terminal.part(line.what, line.words, line.seconds)
        plan = self._plan(found)
        shutil.rmtree(plan.home / "metrics", ignore_errors=True)  # processes that ended would count on
        preparation = Preparation(plan, servers.keeper.include, self._stopping)
        began = time.monotonic()
        made = preparation.wait_for("migrated", slow=lambda: self.terminal.note(TABLES_TAKE_A_WHILE))
        self.terminal.part("tables", made, time.monotonic() - began)
        for name in ("web", "stream", "relay", "job", "beat"):
            supervisor.start(name, getattr(plan, name)(), plan.environment(name))
        world: dict[str, Any] = preparation.wait_for("world")
        supervisor.start("worker", plan.worker(), plan.worker_environment())
        self._wait_ready(plan, supervisor)
        self.terminal.part("web", f"{plan.web_url}/admin/", self._since())
        logs = short(self.options.home / "log")
        self.terminal.part("workers", f"{plan.worker_url}, logs in {logs}", self._since())
        self.terminal.part("e-mail", format_mail(os.environ))
        return Installation(self.options, plan, world, self.terminal, self._stopping)

    def _plan(self, found: dict[str, str]) -> Plan:
        port = self._choose("web", self.options.port)
        stream_port = self._choose("workers", self.options.stream_port)
        return Plan(self.options.root, self.options.home, port, stream_port, found)

    def _choose(self, what: str, wanted: int) -> int:
        port = ports.choose(wanted)
        if port != wanted:
            self.terminal.note(f"Port {wanted} is in use by another program: {what} at {port} instead.")
        return port

    def _wait_ready(self, plan: Plan, supervisor: Supervisor) -> None:
        end = time.monotonic() + READY_SECONDS
        while not (ports.listens(plan.stream_port) and _answers(f"{plan.web_url}/readyz")):
            self._stop_if_told()
            supervisor.check()
            if time.monotonic() > end:
                logs = short(self.options.home / "log")
                raise EmbeddedError(f"Not ready after {READY_SECONDS:.0f} s: {logs}/web.log may say why.")
            time.sleep(TICK_SECONDS)

    def _watch_over(
        self, supervisor: Supervisor, servers: Servers, tour: Tour, installation: Installation, *, stay: bool
    ) -> int:
        outcome: list[int] = []
        guide = threading.Thread(target=_guided, args=(tour, installation, outcome), daemon=True)
        guide.start()
        while not self._stopping.wait(TICK_SECONDS):
            supervisor.check()
            servers.check()
            if not guide.is_alive() and not stay:
                return outcome[0] if outcome else 1
        return 0 if stay else 130

    def _take_down(self, supervisor: Supervisor, servers: Servers) -> None:
        self._stopping.set()
        began = time.monotonic()
        supervisor.stop()
        servers.stop()
        words = "everything; the data stays for the next time"
        self.terminal.part("stopped", words, time.monotonic() - began)

    def _stop_if_told(self) -> None:
        if self._stopping.is_set():
            raise LaunchInterrupted

    def _since(self) -> float:
        return time.monotonic() - self.terminal.began

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def told(number: int, frame: FrameType | None) -> None:
            self._stopping.set()

        words = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {word: signal.signal(word, told) for word in words}
        try:
            yield
        finally:
            for word, handler in before.items():
                signal.signal(word, handler)


class Preparation:
    """The child that migrates, makes keys and the demo's people, and tells line by line how far it is."""

    def __init__(self, plan: Plan, include: Callable[[int], None], stopping: threading.Event) -> None:
        launcher = os.getpid()
        self._stopping = stopping
        self._log = plan.home / "log" / "prepare.log"
        with self._log.open("wb") as errors:
            self._process = subprocess.Popen(
                [PYTHON, "manage.py", "prepare_demo"], cwd=plan.root, env=plan.environment("command"),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
                start_new_session=True, preexec_fn=lambda: die_with(launcher),
            )  # fmt: skip
        include(self._process.pid)
        self._said: dict[str, Any] = {}
        self._ended = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.update(json.loads(line))
        self._process.wait()
        self._ended.set()

    def wait_for(self, word: str, slow: Callable[[], None] | None = None) -> Any:
        """Wait for what the child says under `word`, and return it.

        `slow` is called once if that takes more than a moment.
        """
        patient_until = time.monotonic() + SLOW_SECONDS
        while word not in self._said:
            if slow and time.monotonic() > patient_until:
                slow()
                slow = None
            if self._stopping.is_set():
                self._process.kill()
                raise LaunchInterrupted
            if self._ended.is_set() and word not in self._said:
                raise EmbeddedError("The product could not be prepared.\n" + self._reason())
            time.sleep(0.02)
        return self._said[word]

    def _reason(self) -> str:
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return "\n".join(lines[-8:])


def _guided(tour: Tour, installation: Installation, outcome: list[int]) -> None:
    try:
        outcome.append(tour(installation))
    except Exception as error:
        if not installation.stopping.is_set():
            installation.terminal.fault(f"{type(error).__name__}: {error}")
        outcome.append(1)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
