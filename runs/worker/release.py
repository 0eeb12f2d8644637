"""Released code: fetched by hash, checked, and imported from the checked bytes themselves.

What ran is exactly what was published: a module of a release is compiled from bytes whose hash was just
verified, never from a file that somebody could change in between. Each release is a package of its own
(`factory_release_<hash>`), so that two releases can run side by side in one worker.
"""

import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import rfc8785
import yaml

from runs.worker.client import WorkerClient
from runs.worker.context import Skill
from runs.worker.errors import SkillFailed
from runs.worker.wire import AssignedRelease, digest_bytes

FUNCTION = "run"


@dataclass(frozen=True)
class LoadedRelease:
    """A release in memory: its manifest and the verified bytes of its files."""

    hash: str
    manifest: Mapping[str, Any]
    files: Mapping[str, bytes]

    @property
    def package(self) -> str:
        """The name under which its modules are imported."""
        return "factory_release_" + self.hash.removeprefix("sha256:")[:32]

    def skill(self, skill_id: str | None) -> Skill:
        """The `run` function of a skill."""
        skills = [skill for skill in self.manifest["skills"] if skill["skillId"] == skill_id]
        if not skills or not skills[0].get("entry"):
            raise SkillFailed("permanent", f"the release has no skill {skill_id!r} with an entry")
        entry = str(skills[0]["entry"])
        if not entry.endswith(".py") or entry not in self.files:
            raise SkillFailed("permanent", f"the entry {entry!r} is not a Python file of the release")
        _serve(self)
        module = importlib.import_module(f"{self.package}.{entry.removesuffix('.py').replace('/', '.')}")
        run: Skill = getattr(module, FUNCTION)
        return run


class ReleaseStore:
    """Releases by hash, with a cache of files on disk that is trusted for nothing but speed."""

    def __init__(self, client: WorkerClient, cache: Path) -> None:
        self._client = client
        self._cache = cache
        self._lock = threading.Lock()
        self._loaded: dict[str, LoadedRelease] = {}

    def load(self, release: AssignedRelease) -> LoadedRelease:
        """LoadRelease: asked each time, because a release may have been revoked since."""
        manifest = self._client.manifest(release.manifest_url)
        if manifest["hash"] != release.hash or merkle_root(manifest) != release.hash:
            raise SkillFailed("permanent", "the manifest is not that of the pinned release")
        with self._lock:
            if release.hash not in self._loaded:
                self._loaded[release.hash] = self._fetch(release, manifest["entries"])
            return self._loaded[release.hash]

    def _fetch(self, release: AssignedRelease, entries: Sequence[Mapping[str, Any]]) -> LoadedRelease:
        needed = [entry for entry in entries if entry["kind"] in ("agent", "skill")]
        files = {entry["path"]: self._file(release, entry["sha256"]) for entry in needed}
        manifest = next(entry["sha256"] for entry in entries if entry["kind"] == "manifest")
        return LoadedRelease(release.hash, yaml.safe_load(self._file(release, manifest)), files)

    def _file(self, release: AssignedRelease, wanted: str) -> bytes:
        cached = self._cache / wanted.removeprefix("sha256:")
        if cached.is_file() and digest_bytes(content := cached.read_bytes()) == wanted:
            return content
        content = self._client.download(f"{release.manifest_url.rsplit('/', 1)[0]}/files/{cached.name}")
        if digest_bytes(content) != wanted:
            raise SkillFailed(
                "permanent", f"a released file does not have its published hash, {wanted[:19]}…"
            )
        _keep(cached, content)
        return content


def merkle_root(told: Mapping[str, Any]) -> str:
    """The release's hash, computed anew: RFC 6962's tree over its name and its sorted entries."""
    members = ("kind", "id", "path", "sha256", "size", "sideEffectClass")
    name = {key: told[key] for key in ("asset", "version", "sourceCommit")}
    entries = [{key: entry[key] for key in members} for entry in told["entries"]]
    entries.sort(key=lambda entry: tuple(entry[key] for key in members))
    level = [hashlib.sha256(b"\0" + rfc8785.dumps(leaf)).digest() for leaf in (name, *entries)]
    while len(level) > 1:
        pairs = [level[at : at + 2] for at in range(0, len(level), 2)]
        level = [
            pair[0] if len(pair) == 1 else hashlib.sha256(b"\1" + pair[0] + pair[1]).digest()
            for pair in pairs
        ]
    return "sha256:" + level[0].hex()


def _keep(path: Path, content: bytes) -> None:
    """Whole or not at all, whoever else writes the same file."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as new:
        new.write(content)
    Path(new.name).replace(path)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports the modules of one release from memory."""

    def __init__(self, release: LoadedRelease) -> None:
        self.release = release

    def _path(self, fullname: str) -> tuple[str | None, bool]:
        """The file of a module, and whether it is a package."""
        inner = fullname.removeprefix(self.release.package).lstrip(".").replace(".", "/")
        if f"{inner}.py" in self.release.files:
            return f"{inner}.py", False
        folder = f"{inner}/" if inner else ""
        if f"{folder}__init__.py" in self.release.files:
            return f"{folder}__init__.py", True
        return None, any(path.startswith(folder) for path in self.release.files)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.release.package and not fullname.startswith(self.release.package + "."):
            return None
        file, is_package = self._path(fullname)
        if file is None and not is_package:
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=is_package)

    def is_package(self, fullname: str) -> bool:
        return self._path(fullname)[1]

    def get_source(self, fullname: str) -> str:
        file, _ = self._path(fullname)
        return self.release.files[file].decode("utf-8") if file else ""

    def get_code(self, fullname: str) -> CodeType:
        file, _ = self._path(fullname)
        origin = f"<{self.release.hash[:19]}:{file}>"
        return compile(self.get_source(fullname), origin, "exec", dont_inherit=True)


_served: dict[str, _Finder] = {}
_serving = threading.Lock()


def _serve(release: LoadedRelease) -> None:
    with _serving:
        if release.package not in _served:
            _served[release.package] = finder = _Finder(release)
            sys.meta_path.append(finder)
