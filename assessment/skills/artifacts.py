"""The repository that reports are published to. A proposal is the diff of a commit, byte for byte."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .gitstore import environment

if TYPE_CHECKING:
    from runs.worker.context import SkillContext
    from runs.worker.tools import ToolCall

AUTHOR = {"name": "Factory Assessment", "email": "assessment@factory.invalid"}
FIRST = {"message": "Assessments, a branch for each\n", "date": "2026-01-01T00:00:00Z"}
README = "# Assessments\n\nEach assessment is a commit on a branch of its own, `factory/assessment-<run>`.\n"
NOTHING = "0" * 40
# The one form in which a commit is proposed, and checked.
DIFF = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--full-index", "--text")
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


@dataclass(frozen=True)
class Drafted:
    """A tree that would be committed, and how it differs from its base."""

    tree: str
    diff: bytes
    files: list[dict[str, Any]]


class ArtifactRepository:
    """A bare repository on the worker's machine."""

    def __init__(self, context: "SkillContext", path: Path) -> None:
        self.path = path
        self._context = context
        self._environment = environment(context.workdir)
        self._call: ToolCall | None = None

    @contextmanager
    def _as(self, tool: str) -> Iterator[None]:
        """Several git commands as one call of a tool."""
        with self._context.tool(tool) as self._call:
            try:
                yield
            finally:
                self._call = None

    def ensure(self) -> None:
        """Make it, with one fixed first commit, if it is not there. Two who do so at once agree on one."""
        if (self.path / "HEAD").is_file():
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.path.parent, prefix=".new-") as folder:
            new = ArtifactRepository(self._context, Path(folder) / "repository.git")
            new._create()
            try:
                os.rename(new.path, self.path)  # noqa: PTH104 - must not replace what is there
            except OSError:
                if not (self.path / "HEAD").is_file():
                    raise

    def _create(self) -> None:
        with self._as("git-init"):
            self._git("init", "--quiet", "--bare", "--template=")
            # Full object names in a plain `git diff`, so that anybody gets the approved bytes again.
            self._git("config", "core.abbrev", "40")
        drafted = self.draft(EMPTY_TREE, {"README.md": README.encode()}, keep=True)
        commit = self.commit(drafted.tree, None, FIRST["message"], {**AUTHOR, "date": FIRST["date"]})
        self.create_branch("refs/heads/main", commit)

    def head(self) -> str:
        """Return the commit that a new branch starts from."""
        with self._as("git-rev-parse"):
            return self._git("rev-parse", "--verify", "HEAD^{commit}").decode().strip()

    def branch(self, name: str) -> str | None:
        """Return the commit of a branch, if it is there."""
        with self._as("git-for-each-ref"):
            found = self._git("for-each-ref", "--format=%(objectname)", f"refs/heads/{name}")
        return found.decode().strip() or None

    def draft(self, base: str, files: Mapping[str, bytes], *, keep: bool = False) -> Drafted:
        """Return the tree of `base` with these files in it, and its diff.

        Unless `keep`, new objects go into the skill's own directory: a proposal leaves nothing behind.
        """
        extra = self._objects(keep)
        with self._as("git-draft"):
            self._git("read-tree", base, extra=extra)
            for path, content in files.items():
                hashed = self._git("hash-object", "-w", "--stdin", "--no-filters", stdin=content, extra=extra)
                entry = f"100644,{hashed.decode().strip()},{path}"
                self._git("update-index", "--add", "--cacheinfo", entry, extra=extra)
            tree = self._git("write-tree", extra=extra).decode().strip()
            diff = self._git("diff", *DIFF, "-U3", base, tree, "--", extra=extra)
            return Drafted(tree, diff, self._numbers(base, tree, files, extra))

    def _numbers(
        self, base: str, tree: str, paths: Mapping[str, bytes], extra: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        found = self._git("diff", *DIFF, "--numstat", "-z", base, tree, "--", extra=extra)
        rows = (line.split("\t") for line in found.decode().split("\0") if line)
        changed = {path: (int(added), int(deleted)) for added, deleted, path in rows}
        return [
            {"path": path, "additions": changed[path][0], "deletions": changed[path][1]}
            for path in paths
            if path in changed
        ]

    def commit(
        self, tree: str, parent: str | None, message: str, author: Mapping[str, str], *, keep: bool = True
    ) -> str:
        """Make the commit object: equal arguments always give one id."""
        who = {
            f"GIT_{role}_{key}": author[key.lower()]
            for role in ("AUTHOR", "COMMITTER")
            for key in ("NAME", "EMAIL", "DATE")
        }
        parents = ["-p", parent] if parent else []
        argv = ["-c", "commit.gpgSign=false", "commit-tree", tree, *parents, "-F", "-"]
        extra = {**who, **self._objects(keep)}
        with self._as("git-commit-tree"):
            return self._git(*argv, stdin=message.encode(), extra=extra).decode().strip()

    def _objects(self, keep: bool) -> dict[str, str]:
        """Return the environment that says where new objects go."""
        private = self._context.workdir / "objects"
        private.mkdir(exist_ok=True)
        shared = self.path / "objects"
        return {
            "GIT_INDEX_FILE": str(self._context.workdir / "index"),
            "GIT_OBJECT_DIRECTORY": str(shared if keep else private),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(shared),
        }

    def create_branch(self, ref: str, commit: str) -> None:
        """Make a branch, or fail if it came into being meanwhile."""
        with self._as("git-update-ref"):
            self._git("update-ref", "--no-deref", ref, commit, NOTHING)

    def _git(self, *arguments: str, stdin: bytes = b"", extra: Mapping[str, str] | None = None) -> bytes:
        assert self._call is not None
        argv = ["git", f"--git-dir={self.path}", *arguments]
        return self._call.run(argv, env={**self._environment, **(extra or {})}, stdin=stdin).stdout
