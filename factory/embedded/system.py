"""What the embedded servers need from the operating system."""

import fcntl
import os
import pwd
import secrets as random
import shutil
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import psutil

LEAST_FREE_BYTES = 256 * 1024 * 1024
ROOT_HOMES = Path("/var/lib/factory-control-plane")


class EmbeddedError(RuntimeError):
    """An embedded server cannot do what was asked; the text says why, and what to do about it."""


@dataclass(frozen=True)
class ServerAccount:
    """The unprivileged account that PostgreSQL runs under when we are root."""

    name: str
    uid: int
    gid: int

    def popen(self) -> dict[str, object]:
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


def unprivileged_account() -> ServerAccount | None:
    """Whom to become as root (PostgreSQL refuses to run as root); None for everybody else."""
    if os.geteuid() != 0:
        return None
    for name in (os.environ.get("FACTORY_PG_USER"), "postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name) if name else None
        except KeyError:
            entry = None
        if entry and entry.pw_uid:
            return ServerAccount(entry.pw_name, entry.pw_uid, entry.pw_gid)
    raise EmbeddedError(
        "PostgreSQL does not run as root, and this machine has neither a user 'postgres' nor 'nobody'. "
        "Name another unprivileged user in FACTORY_PG_USER."
    )


def blocked_at(path: Path, account: ServerAccount) -> Path | None:
    """The first directory on the way to `path` that `account` may not pass."""
    for folder in (*reversed(path.parents), path):
        if not folder.exists():
            return None
        found = folder.stat()
        if found.st_uid == account.uid:
            passes = found.st_mode & stat.S_IXUSR
        elif found.st_gid == account.gid:
            passes = found.st_mode & stat.S_IXGRP
        else:
            passes = found.st_mode & stat.S_IXOTH
        if not passes:
            return folder
    return None


def reachable(home: Path, account: ServerAccount | None) -> Path:
    """`home`, or a folder below /var/lib when we are root and the database's user cannot get to `home`.

    Nobody's directories are opened up for it: a checkout below /root stays private.
    """
    home = home.resolve()
    if account is None or blocked_at(home, account) is None:
        return home
    mark = sha256(str(home).encode()).hexdigest()[:12]
    elsewhere = ROOT_HOMES / mark
    make_folder(elsewhere)
    if barrier := blocked_at(elsewhere, account):
        raise EmbeddedError(
            f"The user {account.name} cannot pass {barrier}. Set FACTORY_HOME to a folder that it can reach."
        )
    return elsewhere


def make_folder(path: Path, mode: int = 0o755) -> None:
    try:
        path.mkdir(mode=mode, parents=True, exist_ok=True)
    except OSError as error:
        raise EmbeddedError(
            f"{path} cannot be made ({error.strerror}). Set FACTORY_HOME to a folder that you may write."
        ) from error


def require_space(path: Path) -> None:
    free = shutil.disk_usage(path).free
    if free < LEAST_FREE_BYTES:
        raise EmbeddedError(
            f"The disk under {path} has only {free // 2**20} MB left; the embedded servers need "
            f"{LEAST_FREE_BYTES // 2**20}. Make room, or set FACTORY_HOME to a folder on another disk."
        )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time; the kernel lets go of the lock when its holder dies, however it dies."""
    make_folder(path.parent)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_alive(pid: int, *, holding: str) -> bool:
    """Tell whether `pid` runs and is ours by its command line: numbers get reused, and a zombie is not
    alive."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and holding in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def wait_until(done: Callable[[], bool], *, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def secret(folder: Path, name: str) -> str:
    """The secret called `name`, generated on first use; readable by its owner only."""
    make_folder(folder, 0o700)
    file = folder / name
    with locked(folder / ".lock"):
        if not file.exists() or not file.read_text().strip():
            write_private(file, random.token_urlsafe(32))
    return file.read_text().strip()


def write_private(file: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as out:
            out.write(text + "\n")
        draft.replace(file)
    except OSError as error:
        raise EmbeddedError(f"{file} cannot be written ({error.strerror}).") from error
