"""The web process as it is started for people, over the database of this environment."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from factory.embedded.system import free_port

BROWSER_FLAGS = ("--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking")

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str | None:
    """The browser of this machine. In CI there must be one: the tests then fail instead of being skipped."""
    named = os.environ.get("FACTORY_TEST_CHROMIUM")
    return named or next((path for name in CHROMIUMS if (path := shutil.which(name))), None)


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address where it answers; what it says is kept in `folder`."""
    port, said = free_port(), folder / "said"
    environment = os.environ | {"FACTORY_PROCESS": "web"}
    environment.pop("DJANGO_ALLOW_ASYNC_UNSAFE", None)
    command = [sys.executable, "-m", "config.serving.web", "--port", str(port)]
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
