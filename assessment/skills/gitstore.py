"""A hardened look at a repository: bare, no hooks, no checkout, few protocols, and a limit on everything."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from runs.worker.context import SkillContext

MOST_FILES = 50_000
MOST_BYTES_OF_A_FILE = 1024 * 1024
MOST_BYTES_READ = 256 * 1024 * 1024
MOST_BYTES_CLONED = int(os.environ.get("FACTORY_ASSESSMENT_MOST_BYTES", str(4 * 1024**3)))
CLONE_SECONDS = 900.0
PROTOCOLS = os.environ.get("FACTORY_ASSESSMENT_PROTOCOLS", "file:https")
BATCH_FILES = 2_000
BATCH_BYTES = 64 * 1024 * 1024
COMMIT = re.compile(r"^[0-9a-f]{40}$")

# Safe although `safe.directory` allows all: only objects are read, through upload-pack, and hooks,
# monitors, submodules and helpers are off.
CONFIG = """\
[safe]
\tdirectory = *
[core]
\thooksPath = /dev/null
\tfsmonitor = false
\tautocrlf = false
\tquotePath = false
[protocol]
\tallow = never
{protocols}[credential]
\thelper =
[fetch]
\trecurseSubmodules = false
[gc]
\tauto = 0
[init]
\tdefaultBranch = main
"""


@dataclass(frozen=True)
class TreeEntry:
    """A regular file of the tree."""

    path: str
    blob: str
    size: int


def environment(workdir: Path) -> dict[str, str]:
    """Return the environment of every git that a skill starts: our configuration, nobody else's."""
    config = workdir / "gitconfig"
    if not config.exists():
        allowed = "".join(f'[protocol "{name}"]\n\tallow = always\n' for name in PROTOCOLS.split(":"))
        config.write_text(CONFIG.format(protocols=allowed))
    return {
        "GIT_CONFIG_GLOBAL": str(config),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": PROTOCOLS,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/bin/false",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
    }


def without_credentials(text: str) -> str:
    """Return a URL or a message without user names and passwords in it."""
    return re.sub(r"(?<=://)[^/@\s]+@", "", text)


def source_url(context: "SkillContext", repository: str) -> str:
    """Return the URL to fetch from, or fail for good and say what would be accepted."""
    allowed = PROTOCOLS.split(":")
    parts = urlsplit(repository)
    url = Path(os.path.realpath(repository)).as_uri() if repository.startswith("/") else repository
    scheme = "file" if repository.startswith("/") else parts.scheme
    if scheme not in allowed or "\n" in url:
        raise context.fail(
            "permanent",
            f"the repository must be an absolute path or a URL of {', '.join(allowed)}: "
            f"{without_credentials(repository)[:200]!r} is neither",
        )
    prefixes = [item for item in os.environ.get("FACTORY_ASSESSMENT_SOURCES", "").split(",") if item]
    if prefixes and not any(url.startswith(prefix) for prefix in prefixes):
        raise context.fail(
            "policy-denied", "this worker may not read from there (FACTORY_ASSESSMENT_SOURCES)"
        )
    if scheme == "file" and not Path(unquote(urlsplit(url).path)).exists():
        raise context.fail("permanent", f"there is nothing at {repository[:200]}")
    return url


class Repository:
    """A bare copy in the skill's own directory, holding at least one commit."""

    def __init__(self, context: "SkillContext", repository: str) -> None:
        self.path = context.workdir / "repository.git"
        self.url = source_url(context, repository)
        self._context = context
        self._environment = environment(context.workdir)

    def git(self, tool: str, *arguments: str, stdin: bytes = b"", **options: Any) -> bytes:
        """Run one git command inside the copy, as one call of a tool."""
        with self._context.tool(tool) as call:
            argv = ["git", f"--git-dir={self.path}", *arguments]
            done = call.run(argv, env=self._environment, stdin=stdin, **options)
        return done.stdout

    def resolve(self, revision: str) -> str:
        """Return the commit that a branch, a tag, HEAD or a hash names there."""
        if COMMIT.match(revision):
            return revision
        names = [revision, f"refs/heads/{revision}", f"refs/tags/{revision}^{{}}", f"refs/tags/{revision}"]
        found = self._remote_names(["HEAD"] if revision == "HEAD" else names)
        for name in names:
            if name in found:
                return found[name]
        self.fetch_all()
        asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"]
        try:
            return self.git("git-rev-parse", *asked).decode().strip()
        except Exception as fault:
            if getattr(fault, "exit_code", None) is None:
                raise
            raise self._context.fail(
                "permanent", f"no revision {revision[:200]!r} in the repository"
            ) from fault

    def _remote_names(self, names: Sequence[str]) -> dict[str, str]:
        with self._context.tool("git-ls-remote") as call:
            argv = ["git", "ls-remote", "--end-of-options", self.url, *names]
            done = call.run(argv, env=self._environment, timeout=120.0, check=False)
        if done.exit_code != 0:
            said = without_credentials(done.stderr.decode("utf-8", "replace").strip())[:300]
            raise self._context.fail("permanent", f"the repository cannot be read: {said}")
        lines = (line.split("\t", 1) for line in done.stdout.decode("utf-8", "replace").splitlines())
        return {name: commit for commit, name in lines}

    def fetch_commit(self, commit: str) -> None:
        """Fetch just this commit's tree; everything, where the server hands out no single commits."""
        self._init()
        try:
            self.git(
                "git-fetch",
                "fetch",
                "--depth=1",
                "--no-tags",
                "--update-shallow",
                "--quiet",
                self.url,
                commit,
                **self._limits(),
            )
        except Exception as fault:
            if getattr(fault, "exit_code", None) is None:
                raise
            self.fetch_all()
        self._must_have(commit)

    def fetch_all(self) -> None:
        """Fetch all branches and tags with their history."""
        self._init()
        specs = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*", "+HEAD:refs/factory/head")
        self.git(
            "git-clone",
            "fetch",
            "--quiet",
            "--no-tags",
            "--update-shallow",
            self.url,
            *specs,
            **self._limits(),
        )

    def fetch_history(self, commit: str) -> None:
        """Fetch a commit with all its ancestors."""
        self._init()
        try:
            self.git(
                "git-clone",
                "fetch",
                "--quiet",
                "--no-tags",
                "--update-shallow",
                self.url,
                commit,
                **self._limits(),
            )
        except Exception as fault:
            if getattr(fault, "exit_code", None) is None:
                raise
            self.fetch_all()
        self._must_have(commit)

    def _init(self) -> None:
        if not self.path.exists():
            with self._context.tool("git-init") as call:
                argv = ["git", "init", "--quiet", "--bare", "--template=", str(self.path)]
                call.run(argv, env=self._environment)

    def _must_have(self, commit: str) -> None:
        with self._context.tool("git-cat-file") as call:
            argv = ["git", f"--git-dir={self.path}", "cat-file", "-e", f"{commit}^{{commit}}"]
            done = call.run(argv, env=self._environment, check=False)
        if done.exit_code != 0:
            raise self._context.fail("permanent", f"the repository has no commit {commit}")

    def _limits(self) -> dict[str, Any]:
        return {"timeout": CLONE_SECONDS, "watch": self._refuse_the_huge}

    def _refuse_the_huge(self) -> None:
        size = sum(file.stat().st_size for file in self.path.rglob("*.pack")) + sum(
            file.stat().st_size for file in self.path.rglob("tmp_pack_*")
        )
        if size > MOST_BYTES_CLONED:
            raise self._context.fail("permanent", f"the repository is larger than {MOST_BYTES_CLONED} bytes")

    def files(self, commit: str) -> list[TreeEntry]:
        """Return the regular files of the tree. Links and submodules are not followed."""
        listed = self.git("git-ls-tree", "ls-tree", "-r", "-z", "--long", "--full-tree", commit)
        found: list[TreeEntry] = []
        for line in listed.split(b"\0"):
            head, _, path = line.partition(b"\t")
            fields = head.split()
            if len(fields) == 4 and fields[0] in (b"100644", b"100755", b"100664"):
                name = path.decode("utf-8", "replace")
                found.append(TreeEntry(name, fields[2].decode(), int(fields[3])))
        return found[:MOST_FILES]

    def read(self, entries: Iterable[TreeEntry]) -> Iterator[tuple[TreeEntry, bytes]]:
        """Yield contents of files that are not too large, in batches, until the total limit."""
        batch: list[TreeEntry] = []
        size = total = 0
        for entry in entries:
            if entry.size > MOST_BYTES_OF_A_FILE or total + entry.size > MOST_BYTES_READ:
                continue
            if batch and (len(batch) >= BATCH_FILES or size + entry.size > BATCH_BYTES):
                yield from self._read_batch(batch)
                batch, size = [], 0
            batch.append(entry)
            size += entry.size
            total += entry.size
        if batch:
            yield from self._read_batch(batch)

    def _read_batch(self, batch: Sequence[TreeEntry]) -> Iterator[tuple[TreeEntry, bytes]]:
        asked = "".join(f"{entry.blob}\n" for entry in batch).encode()
        answer = self.git("git-cat-file", "cat-file", "--batch", stdin=asked)
        at = 0
        for entry in batch:
            end = answer.index(b"\n", at)
            size = int(answer[at:end].split()[2])
            yield entry, answer[end + 1 : end + 1 + size]
            at = end + 1 + size + 1


def is_binary(content: bytes) -> bool:
    """Guess it as git does."""
    return b"\0" in content[:8000]


def text_of(content: bytes) -> str:
    """Return a file as text that JSON and a database can carry, whatever bytes are in it."""
    return plain(content.decode("utf-8", "replace"))


def plain(text: str) -> str:
    """Remove NUL and lone surrogates."""
    return re.sub("[\x00\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)


def of_predecessor(context: "SkillContext") -> tuple[Repository, str]:
    """Return the repository of the run, and the commit that `inventory` resolved once for all."""
    found = context.predecessors["inventory"]
    return Repository(context, str(context.input["repository"])), str(found["commit"])
