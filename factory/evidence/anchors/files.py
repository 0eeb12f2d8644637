"""What an anchor is: its form, its signature, and the folder of all of them.

Each anchor names the hash of the one before, holds the heads that changed since, and the Merkle root over all
heads: so the folder is a chain itself, small every day, and whole again whenever `full` is set.
"""

import base64
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from tempfile import mkstemp
from typing import Any
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from factory.kernel.hashing import canonical, digest

FORMAT = 1
FULL_EVERY = 30
"""Every so many anchors hold all heads, so that a lost file costs a month of certainty at the most."""
PATTERN = "anchor-*.json"


@dataclass(frozen=True, slots=True)
class Head:
    """Say where one stream ended, and when its last entry was made."""

    stream: UUID
    tenant: str
    sequence: int
    hash: str
    at: str


@dataclass(slots=True)
class Anchor:
    """One anchor as it was signed. `heads` are those that changed since the one before, or all if `full`."""

    number: int
    previous: str
    taken_at: str
    newest_at: str
    full: bool
    streams: int
    root: str
    rows: dict[str, int]
    purges: int
    purge_hash: str
    facts: dict[str, int]
    restored_to: str
    heads: list[Head] = field(default_factory=list)

    def content(self) -> dict[str, Any]:
        """Return what is signed."""
        plain = {name: getattr(self, name) for name in self.__slots__ if name != "heads"}
        heads = [[str(h.stream), h.tenant, h.sequence, h.hash, h.at] for h in self.heads]
        return {"format": FORMAT, **plain, "heads": heads}

    @property
    def hash(self) -> str:
        return digest(self.content())


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with the anchors themselves: missing, unreadable or forged."""

    kind: str
    subject: str
    detail: str


@dataclass(frozen=True, slots=True)
class KnownAnchor:
    """Hold what is remembered of a genuine anchor: everything but its heads, which stay in its file."""

    anchor: Anchor
    hash: str
    file: Path

    def heads(self) -> list[Head]:
        """Its heads, read anew. Raises `ValueError` if the file is not the one that was checked."""
        anchor = _parsed(json.loads(self.file.read_bytes())["anchor"])
        if anchor.hash != self.hash:
            raise ValueError(f"{self.file.name} was changed while it was looked at.")
        return anchor.heads


@dataclass(slots=True)
class Folder:
    """Every anchor that can be read and is genuine, in order, and what is wrong with the others.

    The heads of one anchor at a time are in memory, and the last head of each stream: so memory grows with
    the streams that there are, and not with the days that were anchored.
    """

    kept: list[KnownAnchor] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    heads: dict[UUID, Head] = field(default_factory=dict)
    """The last anchored head of every stream."""

    @property
    def anchors(self) -> list[Anchor]:
        """The anchors in order, without their heads."""
        return [each.anchor for each in self.kept]

    @property
    def last(self) -> KnownAnchor | None:
        return self.kept[-1] if self.kept else None

    def add(self, anchor: Anchor, hash_: str, file: Path) -> None:
        """Take the next one in."""
        if anchor.full:
            self.heads.clear()
        self.heads.update((head.stream, head) for head in anchor.heads)
        self.kept.append(KnownAnchor(replace(anchor, heads=[]), hash_, file))

    def every_head(self) -> Iterator[tuple[Anchor, Head]]:
        """Each head with the anchor that holds it, one file after the other."""
        for each in self.kept:
            for head in each.heads():
                yield each.anchor, head


class Merkle:
    """The root over (stream, sequence, hash) in the order of the streams; leaves and nodes hash apart."""

    def __init__(self) -> None:
        self.count = 0
        self._peaks: list[tuple[int, bytes]] = []

    def add(self, stream: UUID, sequence: int, hash_: str) -> None:
        """The next leaf. Of what came before only the roots of whole subtrees are kept."""
        self.count += 1
        size, node = 1, sha256(b"\0" + f"{stream}\n{sequence}\n{hash_}".encode()).digest()
        while self._peaks and self._peaks[-1][0] == size:
            _, left = self._peaks.pop()
            size, node = size * 2, _joined(left, node)
        self._peaks.append((size, node))

    @property
    def root(self) -> str:
        if not self._peaks:
            return "sha256:" + sha256(b"").hexdigest()
        node = self._peaks[-1][1]
        for _, left in reversed(self._peaks[:-1]):
            node = _joined(left, node)
        return "sha256:" + node.hex()


def _joined(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()


def merkle_root(heads: Iterable[Head]) -> str:
    """The root over these heads, in whichever order they come."""
    tree = Merkle()
    for head in sorted(heads, key=lambda head: head.stream):
        tree.add(head.stream, head.sequence, head.hash)
    return tree.root


def signing_key(file: Path) -> Ed25519PrivateKey:
    """The installation's own key, made on first use and readable by its owner only."""
    if not file.exists():
        made = Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            put(file, made, mode=0o600)
    key = serialization.load_pem_private_key(file.read_bytes(), None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(f"{file} holds no Ed25519 key.")
    return key


def public_pem(key: Ed25519PrivateKey) -> str:
    """The public half, for whoever checks anchors elsewhere."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form).decode()


def fingerprint(key: Ed25519PublicKey) -> str:
    """A key in a few letters."""
    return sha256(key.public_bytes_raw()).hexdigest()[:16]


def public_key(file: Path) -> Ed25519PublicKey:
    """A public key from a PEM file of either half."""
    content = file.read_bytes()
    if b"PRIVATE" in content:
        return signing_key(file).public_key()
    key = serialization.load_pem_public_key(content)
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError(f"{file} holds no Ed25519 key.")
    return key


def write(folder: Path, anchor: Anchor, key: Ed25519PrivateKey) -> Path:
    """Sign an anchor and put it into the folder: whole or not at all, and never over another one."""
    folder.mkdir(parents=True, exist_ok=True)
    content = anchor.content()
    signature = base64.b64encode(key.sign(canonical(content))).decode()
    file = folder / f"anchor-{anchor.number:06d}.json"
    document = json.dumps({"anchor": content, "signature": signature}, separators=(",", ":"))
    put(file, document.encode(), mode=0o444)
    return file


def put(file: Path, content: bytes, *, mode: int) -> None:
    """A new file, whole or not at all, wherever this is stopped. Raises `FileExistsError`."""
    handle, name = mkstemp(dir=file.parent, prefix=f".{file.name}.")
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as new:
            new.write(content)
            new.flush()
            os.fsync(new.fileno())
        draft.chmod(mode)
        os.link(draft, file)
    finally:
        draft.unlink()


def read(folder: Path, key: Ed25519PublicKey) -> Folder:
    """All anchors of a folder. Missing, unreadable and forged ones are told apart."""
    found = Folder()
    expected, previous, broken = 1, "", False
    for file in sorted(folder.glob(PATTERN)):
        anchor = _read_one(file, key, found)
        number = anchor.number if anchor else number_of(file)
        if number > expected:
            found.faults.append(Fault("missing", _range(expected, number - 1), "the anchor is not there"))
            broken = True
        expected = number + 1
        if anchor is None:
            broken = True
            continue
        if not broken and anchor.previous != previous:
            text = "it follows another anchor than the one that is there"
            found.faults.append(Fault("forged", file.name, text))
            broken = True
        previous = anchor.hash
        found.add(anchor, previous, file)
        broken = _check_root(anchor, found, broken)
    return found


def _read_one(file: Path, key: Ed25519PublicKey, found: Folder) -> Anchor | None:
    try:
        document = json.loads(file.read_bytes())
        content, signature = document["anchor"], base64.b64decode(document["signature"], validate=True)
        anchor = _parsed(content)
    except (OSError, ValueError, KeyError, TypeError) as fault:
        found.faults.append(Fault("unreadable", file.name, f"it cannot be read ({type(fault).__name__})"))
        return None
    try:
        key.verify(signature, canonical(content))
    except InvalidSignature:
        found.faults.append(Fault("forged", file.name, "its signature is not the installation's"))
        return None
    if anchor.number != number_of(file):
        found.faults.append(Fault("forged", file.name, f"it is anchor {anchor.number} under another name"))
        return None
    return anchor


def _parsed(content: Mapping[str, Any]) -> Anchor:
    if content["format"] != FORMAT:
        raise ValueError("unknown format")
    values = {name: content[name] for name in Anchor.__slots__}
    values["heads"] = [Head(UUID(s), t, int(n), h, at) for s, t, n, h, at in content["heads"]]
    return Anchor(**values)


def _check_root(anchor: Anchor, found: Folder, broken: bool) -> bool:
    """Tell whether the anchors after it can be checked against their predecessors no more."""
    if broken and not anchor.full:
        return True
    if merkle_root(found.heads.values()) != anchor.root:
        found.faults.append(
            Fault("forged", f"anchor {anchor.number}", "its root does not follow from its heads")
        )
        return True
    return False


def number_of(file: Path) -> int:
    """The number that a file's name says; 0 for a name that says none."""
    digits = file.stem.removeprefix("anchor-")
    return int(digits) if digits.isdigit() else 0


def _range(first: int, last: int) -> str:
    return f"anchor {first}" if first == last else f"anchors {first} to {last}"


def at_of(text: str) -> datetime:
    """A time as anchors write it."""
    return datetime.fromisoformat(text)
