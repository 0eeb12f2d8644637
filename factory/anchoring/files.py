"""What an anchor is: its form, its signature, and the folder of all of them.

Each anchor names the hash of the one before, holds the heads that changed since, and the Merkle root over all
heads: so the folder is a chain itself, small every day, and whole again whenever `full` is set.
"""

import base64
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from tempfile import mkstemp
from typing import Any
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from factory.hashing import canonical, digest

FORMAT = 1
FULL_EVERY = 30
"""Every so many anchors hold all heads, so that a lost file costs a month of certainty at the most."""
PATTERN = "anchor-*.json"


@dataclass(frozen=True, slots=True)
class Head:
    """Where one stream ended, and when its last entry was made."""

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
        """What is signed."""
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


@dataclass(slots=True)
class Folder:
    """Every anchor that can be read and is genuine, in order, and what is wrong with the others."""

    anchors: list[Anchor] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    heads: dict[UUID, Head] = field(default_factory=dict)
    """The last anchored head of every stream."""

    @property
    def last(self) -> Anchor | None:
        return self.anchors[-1] if self.anchors else None

    def add(self, anchor: Anchor) -> None:
        """Take the next one in."""
        self.anchors.append(anchor)
        if anchor.full:
            self.heads.clear()
        self.heads.update((head.stream, head) for head in anchor.heads)


def merkle_root(heads: Iterable[tuple[UUID, int, str]]) -> str:
    """The root over (stream, sequence, hash) in the order of the streams; leaves and nodes hash apart."""
    level = [
        sha256(b"\0" + f"{stream}\n{sequence}\n{hash_}".encode()).digest()
        for stream, sequence, hash_ in sorted(heads)
    ]
    while len(level) > 1:
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
        level = [sha256(b"\1" + b"".join(pair)).digest() if len(pair) == 2 else pair[0] for pair in pairs]
    return "sha256:" + (level[0] if level else sha256(b"").digest()).hex()


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
        broken = _check_root(anchor, found, broken)
        previous = anchor.hash
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
    """Add the anchor; whether what follows can be checked against its predecessors is answered."""
    found.add(anchor)
    if broken and not anchor.full:
        return True
    if merkle_root((h.stream, h.sequence, h.hash) for h in found.heads.values()) != anchor.root:
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


def every_head(anchors: Iterable[Anchor]) -> Iterator[tuple[Anchor, Head]]:
    """Each head with the anchor that holds it."""
    for anchor in anchors:
        for head in anchor.heads:
            yield anchor, head
