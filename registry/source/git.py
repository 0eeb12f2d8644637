"""Exactly one commit, fetched by Git without trusting the repository, and read without a checkout."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO

from registry.errors import FetchFailed, ManifestRefused
from registry.source.locations import Source, check_commit, vetted_address

# The limits are set in a fresh process before Git starts: every child that Git makes inherits them.
_LIMITED = (
    "import os, resource, sys\n"
    "size, cpu = int(sys.argv[1]), int(sys.argv[2])\n"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))\n"
    "resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))\n"
    "resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))\n"
    "os.execvp(sys.argv[3], sys.argv[3:])\n"
)
_CONFIG = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "credential.helper": "",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "http.followRedirects": "false",
    "http.proxy": "",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "20",
    "maintenance.auto": "false",
    "protocol.version": "2",
    "submodule.recurse": "false",
    "transfer.bundleURI": "false",
    "transfer.fsckObjects": "true",
    "uploadpack.allowAnySHA1InWant": "true",
}


@dataclass(frozen=True, slots=True)
class SourceLimits:
    """Limit what a source may cost before it is given up."""

    seconds: int = 30
    pack_bytes: int = 256 * 1024 * 1024
    file_bytes: int = 1024 * 1024
    total_bytes: int = 16 * 1024 * 1024
    files: int = 1000


@dataclass(frozen=True, slots=True)
class FetchedCommit:
    """One fetched commit; it lives as long as the `fetched` block."""

    folder: Path
    oid: str
    limits: SourceLimits

    def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Return the contents of regular files of the commit.

        Raises ManifestRefused for a file that is missing, is no regular file, or is too large.
        """
        if len(paths) > self.limits.files:
            raise ManifestRefused(f"A release holds at most {self.limits.files} files.")
        objects = self._entries(paths)
        return dict(zip(paths, self._contents([objects[path] for path in paths]), strict=True))

    def _entries(self, paths: Sequence[str]) -> dict[str, str]:
        arguments = ["--literal-pathspecs", "ls-tree", "-z", "--long", self.oid, "--", *paths]
        listing = _git(self.folder, arguments, self.limits)
        objects: dict[str, str] = {}
        total = 0
        for line in filter(None, listing.decode("utf-8", "surrogateescape").split("\0")):
            fields, _, path = line.partition("\t")
            mode, _, oid, size = fields.split()
            if mode not in ("100644", "100755"):
                raise ManifestRefused(f"{path} is not a regular file of the commit.")
            total += self._size(path, int(size))
            objects[path] = oid
        missing = sorted(set(paths) - objects.keys())
        if missing:
            raise ManifestRefused(f"The commit holds no file {missing[0]}.")
        if total > self.limits.total_bytes:
            raise ManifestRefused(f"All files are {total} bytes, more than {self.limits.total_bytes}.")
        return objects

    def _size(self, path: str, size: int) -> int:
        if size > self.limits.file_bytes:
            raise ManifestRefused(f"{path} has {size} bytes, more than {self.limits.file_bytes}.")
        return size

    def _contents(self, oids: Sequence[str]) -> Iterator[bytes]:
        wanted = "".join(f"{oid}\n" for oid in oids).encode()
        stream = _git(self.folder, ["cat-file", "--batch"], self.limits, given=wanted)
        at = 0
        for oid in oids:
            end = stream.index(b"\n", at)
            name, kind, size = stream[at:end].decode().split()
            if (name, kind) != (oid, "blob"):
                raise FetchFailed("Git answered with another object than the one asked for.")
            yield stream[end + 1 : end + 1 + int(size)]
            at = end + 1 + int(size) + 1


@contextmanager
def fetched(source: Source, commit: str, limits: SourceLimits | None = None) -> Iterator[FetchedCommit]:
    """Fetch one commit into a folder of its own, gone afterwards. Never inside a transaction.

    Raises SourceRefused for a host that leads inside, FetchFailed for what may work later.
    """
    limits = limits or SourceLimits()
    check_commit(commit)
    with tempfile.TemporaryDirectory(prefix="factory-fetch-") as directory:
        folder = Path(directory)
        _configure(folder, source)
        _git(folder, ["init", "--quiet", "--bare", "--template=", "--", "objects.git"], limits, inside="")
        _git(folder, _fetch(source, commit), limits, protocol=source.protocol)
        kind = _git(folder, ["cat-file", "-t", commit], limits)
        if kind.strip() != b"commit":
            raise FetchFailed(f"{commit} is not a commit.")
        yield FetchedCommit(folder, commit, limits)


def _fetch(source: Source, commit: str) -> list[str]:
    quiet = ["fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"]
    return [*quiet, "--no-auto-maintenance", "--", source.url, commit]


def _configure(folder: Path, source: Source) -> None:
    """Settings by file: the far end of a local fetch does not inherit those of the command line."""
    config = dict(_CONFIG)
    if source.protocol == "https":
        _require_pinning()
        address = vetted_address(source)
        shown = f"[{address}]" if ":" in address else address
        config["http.curloptResolve"] = f"{source.host}:{source.port}:{shown}"
    else:
        config["safe.directory"] = source.url
    lines: list[str] = []
    for name, value in config.items():
        section, _, key = name.rpartition(".")
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'[{section}]\n\t{key} = "{quoted}"\n')
    if source.protocol == "file":
        quoted = source.url.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'[safe]\n\tdirectory = "{quoted}/.git"\n')
    (folder / "config").write_text("".join(lines), encoding="utf-8")


@cache
def _require_pinning() -> None:
    """Before 2.37 Git does not know how to connect to a vetted address, and would look the name up anew."""
    version = subprocess.run(["git", "version"], capture_output=True, text=True, check=True).stdout
    numbers = re.search(r"(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < (2, 37):
        raise FetchFailed("Fetching by https needs Git 2.37 or newer on the server.")


def _environment(folder: Path, protocol: str) -> Mapping[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "LC_ALL": "C",
        "GIT_ALLOW_PROTOCOL": protocol,
        "GIT_ASKPASS": "/bin/false",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(folder / "config"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PROTOCOL_FROM_USER": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "SSH_ASKPASS": "/bin/false",
    }


def _git(
    folder: Path,
    arguments: Sequence[str],
    limits: SourceLimits,
    *,
    given: bytes = b"",
    protocol: str = "none",
    inside: str = "objects.git",
) -> bytes:
    where = [f"--git-dir={inside}"] if inside else []
    limited = [sys.executable, "-I", "-S", "-c", _LIMITED, str(limits.pack_bytes), str(limits.seconds), "git"]
    # A remote may talk without end: its words go to a file, which the limits cap.
    with (folder / "said").open("w+b") as errors:
        process = subprocess.Popen(
            [*limited, "--no-pager", *where, *arguments],
            cwd=folder,
            env=_environment(folder, protocol),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
        try:
            out, _ = process.communicate(given, timeout=limits.seconds)
        except subprocess.TimeoutExpired as fault:
            raise FetchFailed(f"Git took longer than {limits.seconds} s.") from fault
        finally:
            _end(process)
        if process.returncode:
            raise FetchFailed(f"Git refused: {_last_line(errors)}")
    return out


def _end(process: subprocess.Popen[bytes]) -> None:
    """End Git with all that it started: they share one process group, made for them."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.poll() is None:
        process.communicate()


def _last_line(errors: BinaryIO) -> str:
    errors.seek(max(0, errors.seek(0, os.SEEK_END) - 2000))
    lines = [line for line in errors.read().decode("utf-8", "replace").splitlines() if line.strip()]
    text = lines[-1] if lines else "it said nothing"
    return "".join(char if char.isprintable() else "?" for char in text)[:300]
