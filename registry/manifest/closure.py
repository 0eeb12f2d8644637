"""The closure of a release: what belongs to it, each piece with its hash, and one hash over all. Pure."""

import hashlib
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from factory.kernel.hashing import canonical, digest, digest_bytes

EntryKind = str
KINDS = ("agent", "dependency", "evaluation", "manifest", "model-profile", "skill", "workflow")


@dataclass(frozen=True, slots=True, order=True)
class ClosureFile:
    """One piece of a release: a file, a definition, or another release that it depends on."""

    kind: EntryKind
    item_id: str
    path: str
    sha256: str
    size: int
    side_effect_class: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "id": self.item_id,
            "path": self.path,
            "sha256": self.sha256,
            "size": self.size,
            "sideEffectClass": self.side_effect_class,
        }


@dataclass(frozen=True, slots=True)
class ResolvedClosure:
    """Everything that a commit says about a release. `files` are contents by their hash."""

    definition: dict[str, Any]
    entries: tuple[ClosureFile, ...]
    files: dict[str, bytes]
    hash: str


def referred_files(definition: Mapping[str, Any]) -> list[tuple[EntryKind, str, str, str]]:
    """(kind, id, path, class) of every file that the manifest names, each once."""
    files: dict[tuple[EntryKind, str, str, str], None] = {}
    for agent in definition["agents"]:
        for path in (agent["entry"], *agent.get("files", ())):
            files["agent", agent["agentId"], path, ""] = None
    for skill in definition["skills"]:
        for path in skill["files"]:
            files["skill", skill["skillId"], path, skill["sideEffectClass"]] = None
    for path in definition["evaluation"]["files"]:
        files["evaluation", definition["evaluation"]["suite"], path, ""] = None
    return list(files)


def in_repository(manifest_path: str, path: str) -> str:
    """Return where a file of the manifest lies in the repository: the manifest's folder is its root."""
    return posixpath.join(posixpath.dirname(manifest_path), path)


def close(
    *,
    commit: str,
    definition: dict[str, Any],
    manifest: bytes,
    contents: Mapping[str, bytes],
    dependencies: Mapping[str, str],
) -> ResolvedClosure:
    """Build the closure from the manifest, the files by their path, and the hashes of the dependencies."""
    hashes = {path: digest_bytes(content) for path, content in contents.items()}
    entries = [ClosureFile("manifest", definition["asset"], "", digest_bytes(manifest), len(manifest))]
    entries += [
        ClosureFile(kind, item, path, hashes[path], len(contents[path]), side_effect_class)
        for kind, item, path, side_effect_class in referred_files(definition)
    ]
    entries += _defined(definition)
    entries += [ClosureFile("dependency", name, "", dependencies[name], 0) for name in dependencies]
    files = {hashes[path]: bytes(content) for path, content in contents.items()}
    files[digest_bytes(manifest)] = manifest
    ordered = tuple(sorted(entries))
    root = release_hash(definition["asset"], definition["version"], commit, ordered)
    return ResolvedClosure(definition, ordered, files, root)


def _defined(definition: Mapping[str, Any]) -> list[ClosureFile]:
    """Return what the manifest defines in itself: its hash is that of its canonical form."""
    workflows = [
        ClosureFile("workflow", item["workflowId"], "", digest(item), len(canonical(item)))
        for item in definition["workflows"]
    ]
    profiles = [
        ClosureFile("model-profile", item["modelProfileId"], "", digest(item), len(canonical(item)))
        for item in definition["modelProfiles"]
    ]
    return workflows + profiles


def release_hash(asset: str, version: str, commit: str, entries: Iterable[ClosureFile]) -> str:
    """Return the Merkle root over the release's name and its entries, whatever the order they come in."""
    name = {"asset": asset, "version": version, "sourceCommit": commit}
    leaves = [canonical(name), *(canonical(entry.to_json()) for entry in sorted(entries))]
    return "sha256:" + _root([hashlib.sha256(b"\0" + leaf).digest() for leaf in leaves]).hex()


def _root(nodes: Sequence[bytes]) -> bytes:
    """Return the root of RFC 6962's tree. Leaves and nodes have different prefixes; an odd one goes up."""
    level = list(nodes)
    while len(level) > 1:
        pairs = [level[at : at + 2] for at in range(0, len(level), 2)]
        level = [pair[0] if len(pair) == 1 else _node(*pair) for pair in pairs]
    return level[0]


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()
