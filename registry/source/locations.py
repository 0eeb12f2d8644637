"""Where a release may come from: which repositories and commits are fetched at all."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from factory.kernel.egress import NotPublic, public_address
from registry.errors import FetchFailed, SourceRefused

COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
MANIFEST_PATH = re.compile(
    r"(?!.*(?:^|/)\.{1,2}(?:/|$))[A-Za-z0-9_.][A-Za-z0-9_.+@-]*(?:/[A-Za-z0-9_.+@-]+)*"
)
_PRINTABLE = re.compile(r"[!-~]{1,500}")
_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Source:
    """Tell Git where to read: an address to use as it is, its protocol, and where a host's name must lead."""

    url: str
    protocol: str
    host: str = ""
    port: int = 443


def check_commit(commit: str) -> str:
    """Accept a full object id alone: a branch, a tag or a short id can come to mean something else."""
    if not COMMIT.fullmatch(commit):
        raise SourceRefused("The commit has to be the full object id: 40 (or 64) lower-case hex digits.")
    return commit


def check_manifest_path(path: str) -> str:
    """Accept a relative path inside the repository alone."""
    if len(path) > 255 or not MANIFEST_PATH.fullmatch(path):
        raise SourceRefused("The manifest's path has to be relative, with forward slashes and no `..`.")
    return path


def check_repository(repository: str, local_roots: Sequence[str]) -> Source:
    """Return the source behind an address. Raises SourceRefused for every form that is not plainly allowed.

    Allowed are `https://host/path` without a user in it, and local folders (a path or `file://`) under
    one of the roots that the operator named.
    """
    if repository.startswith(("/", "file:")):
        return _local(repository, local_roots)
    if not _PRINTABLE.fullmatch(repository) or repository.startswith("-"):
        raise SourceRefused("The repository's address holds characters that no address needs.")
    parts = urlsplit(repository)
    if parts.scheme != "https":
        raise SourceRefused("A repository is reached by https only.")
    return _remote(repository)


def _remote(repository: str) -> Source:
    parts = urlsplit(repository)
    try:
        port = parts.port or 443
    except ValueError as fault:
        raise SourceRefused("The repository's address has no valid port.") from fault
    if "@" in parts.netloc or "\\" in repository or parts.query or parts.fragment:
        raise SourceRefused("The repository's address may hold no user, no query and no fragment.")
    if not _HOST.fullmatch(parts.hostname or ""):
        raise SourceRefused("The repository's host has to be a full name, not an address or a short name.")
    if not parts.path.strip("/"):
        raise SourceRefused("The repository's address has no path.")
    return Source(f"https://{parts.hostname}:{port}{parts.path}", "https", str(parts.hostname), port)


def _local(repository: str, roots: Sequence[str]) -> Source:
    raw = unquote(repository.removeprefix("file://")) if repository.startswith("file:") else repository
    if not raw.startswith("/") or "\0" in raw or "\n" in raw or len(raw) > 500:
        raise SourceRefused("A local repository is named by its absolute path.")
    if not roots:
        raise SourceRefused(
            "Local repositories are not allowed here, because FACTORY_GIT_LOCAL_ROOTS names no folder."
        )
    real = Path(raw).resolve()
    if not any(real.is_relative_to(Path(root).resolve()) for root in roots):
        raise SourceRefused("The repository is outside the folders that FACTORY_GIT_LOCAL_ROOTS allows.")
    return Source(str(real), "file")


def vetted_address(source: Source) -> str:
    """Return the public address that a host's name leads to now; the fetch connects to it alone.

    A name that leads to any address that is not public is refused as a whole.
    """
    try:
        return public_address(source.host, source.port)
    except OSError as fault:
        raise FetchFailed(f"The host {source.host} cannot be found.") from fault
    except NotPublic as fault:
        raise SourceRefused(str(fault)) from fault
