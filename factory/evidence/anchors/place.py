"""Where this installation keeps its anchors, and the key that signs them."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from django.conf import settings

from factory.evidence.anchors import files
from factory.evidence.anchors.files import Folder

_elsewhere: ContextVar[Path | None] = ContextVar("factory_anchor_folder", default=None)


@contextmanager
def in_folder(place: Path | None) -> Iterator[None]:
    """Work with another folder of anchors than the configured one."""
    token = _elsewhere.set(place or _elsewhere.get())
    try:
        yield
    finally:
        _elsewhere.reset(token)


def folder() -> Path:
    """Return where the anchors are."""
    return _elsewhere.get() or Path(settings.FACTORY_ANCHORS_DIR)


def key_file() -> Path:
    """The signing key; where anchors are only checked, its public half is enough."""
    return Path(settings.FACTORY_ANCHOR_KEY_FILE)


def known() -> Folder:
    """All anchors as they stand, checked against the installation's key."""
    if not any(folder().glob(files.PATTERN)):
        return Folder()
    return files.read(folder(), files.public_key(key_file()))


def anchors_state() -> str:
    """The last anchor in words, with the key's fingerprint; empty if there is none."""
    last = known().last
    return f"anchor {last.anchor.number} of {last.anchor.taken_at} by {fingerprint()}" if last else ""


def fingerprint() -> str:
    """Return which key signs here, in a few letters; empty if there is none yet."""
    return files.fingerprint(files.public_key(key_file())) if key_file().exists() else ""
