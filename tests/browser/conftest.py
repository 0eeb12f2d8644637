"""A real browser on a real web process, over the test's database: what a person would see and do."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, sync_playwright

from factory.embedded.system import free_port
from tests.browser.visitor import Visitor
from tests.support.running import House

FLAGS = ("--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking")


@pytest.fixture(scope="session")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The web process as it is started for people, with the address where it answers."""
    port, said = free_port(), tmp_path_factory.mktemp("web") / "said"
    environment = os.environ | {"FACTORY_PROCESS": "web"}
    environment.pop("DJANGO_ALLOW_ASYNC_UNSAFE", None)
    command = [
        sys.executable, "-m", "gunicorn", "config.wsgi:application", "--bind", f"127.0.0.1:{port}",
        "--worker-class", "gthread", "--workers", "1", "--threads", "8", "--graceful-timeout", "1",
        "--no-control-socket", "--log-level", "warning",
    ]  # fmt: skip
    with said.open("w") as out:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        _await(f"http://127.0.0.1:{port}", process, said)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


def _await(address: str, process: subprocess.Popen[bytes], said: Path) -> None:
    end = time.monotonic() + 120
    while True:
        try:
            with urlopen(f"{address}/healthz", timeout=30):
                return
        except (URLError, ConnectionError, TimeoutError):
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < end, said.read_text()
            time.sleep(0.2)


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """One Chromium for a module. It ends with it: while it lives, its event loop does."""
    with pytest.MonkeyPatch.context() as patch:
        # Playwright runs an event loop in this thread; Django takes the test for a coroutine and refuses.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        with sync_playwright() as playwright:
            opened = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
            yield opened
            opened.close()


Visit = Callable[..., Visitor]


@pytest.fixture
def visit(browser: Browser, web: str) -> Iterator[Visit]:
    """Open a window for somebody. At the end, nothing in it may have gone wrong unseen."""
    opened: list[Visitor] = []

    def come(**how: object) -> Visitor:
        opened.append(Visitor(browser, web, **how))
        return opened[-1]

    yield come
    for visitor in opened:
        visitor.leave()


@pytest.fixture
def house(tenant_id: str) -> House:
    return House(tenant_id)
