"""Public keys of the trusted issuers: by URL with a cache, from a file, or our own."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import httpx
import structlog
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK
from jwt.exceptions import PyJWTError

ALGORITHMS = ("RS256", "ES256", "EdDSA")
"""Asymmetric ones only: a shared secret would let whoever can check a token also make one."""

MIN_RSA_BITS = 2048
MAX_JWKS_BYTES = 256 * 1024
FRESH_SECONDS = 300.0
STALE_SECONDS = 3600.0
REREAD_SECONDS = 2.0
REFETCH_SECONDS = 30.0
"""An unknown key id may make us ask the issuer again, but not more often: made-up ids are free to send."""

log = structlog.get_logger(__name__)


class KeysUnavailable(Exception):
    """The issuer's keys cannot be had at the moment."""


class KeySource(Protocol):
    def key(self, kid: str) -> PyJWK | None: ...


def parse_jwks(document: Any) -> dict[str, PyJWK]:
    """The usable public keys of a JWK set by their ids; what is weak, private or symmetric is left out."""
    entries = document.get("keys") if isinstance(document, Mapping) else None
    if not isinstance(entries, list):
        raise KeysUnavailable("The key set is not a JWK set.")
    keys = {}
    for entry in entries[:100]:
        parsed = _parse(entry)
        if parsed is not None:
            keys[str(entry["kid"])] = parsed
    return keys


def _parse(entry: Any) -> PyJWK | None:
    if not isinstance(entry, Mapping) or not entry.get("kid"):
        return None
    if entry.get("use", "sig") != "sig" or "d" in entry:
        return None
    try:
        parsed = PyJWK(dict(entry))
    except (PyJWTError, ValueError, TypeError, KeyError):
        return None
    if parsed.algorithm_name not in ALGORITHMS:
        return None
    if isinstance(parsed.key, RSAPublicKey) and parsed.key.key_size < MIN_RSA_BITS:
        return None
    return parsed


class FileKeys:
    """A JWK set behind a file, read again when the file changes, and every two seconds in any case.

    A file that is put in another's place may have its size and its times. What replaces a key so holds at
    the next token, and at the latest after `REREAD_SECONDS`, in every process. `read` answers with the set,
    where the file itself is none.
    """

    def __init__(
        self,
        path: Path,
        *,
        read: Callable[[], Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._read = read or (lambda: json.loads(path.read_bytes()))
        self._clock = clock
        self._stamp: tuple[int, ...] | None = None
        self._read_at = -float("inf")
        self._keys: dict[str, PyJWK] = {}
        self._lock = threading.Lock()

    def key(self, kid: str) -> PyJWK | None:
        with self._lock:
            stamp, at = self._stamped(), self._clock()
            if stamp is None or stamp != self._stamp or at - self._read_at >= REREAD_SECONDS:
                self._keys = self._look()
                self._stamp, self._read_at = stamp, at
            return self._keys.get(kid)

    def _stamped(self) -> tuple[int, ...] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino

    def _look(self) -> dict[str, PyJWK]:
        try:
            return parse_jwks(self._read())
        except (OSError, ValueError, TypeError) as fault:
            self._stamp = None
            raise KeysUnavailable(f"The key file {self._path.name} cannot be read.") from fault


class RemoteKeys:
    """A JWK set by URL: cached for five minutes, and asked for again at most every half minute.

    So a new key is good at the latest after half a minute, and one that was taken away after five. While
    the issuer does not answer, keys that are not older than an hour still count, so that its outage is not
    ours.
    """

    def __init__(
        self,
        url: str,
        *,
        fetch: Callable[[str], Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._fetch = fetch or fetch_jwks
        self._clock = clock
        self._keys: dict[str, PyJWK] = {}
        self._fetched_at = -float("inf")
        self._asked_at = -float("inf")
        self._lock = threading.Lock()

    def key(self, kid: str) -> PyJWK | None:
        age = self._clock() - self._fetched_at
        if age > FRESH_SECONDS or kid not in self._keys:
            self._refresh(kid)
        if self._clock() - self._fetched_at > STALE_SECONDS:
            raise KeysUnavailable("The issuer's keys could not be fetched.")
        return self._keys.get(kid)

    def _refresh(self, kid: str) -> None:
        # One thread asks; the others go on with what is cached, unless there is nothing at all yet.
        if not self._lock.acquire(blocking=not self._keys):
            return
        try:
            if self._clock() - self._asked_at < REFETCH_SECONDS:
                return
            self._asked_at = self._clock()
            self._keys = parse_jwks(self._fetch(self._url))
            self._fetched_at = self._clock()
        except (httpx.HTTPError, ValueError, KeysUnavailable) as fault:
            log.warning("jwks_fetch_failed", url=self._url, fault=type(fault).__name__)
        finally:
            self._lock.release()


def fetch_jwks(url: str) -> Any:
    """The JWK set behind the URL: bounded in time and size, without following a redirect."""
    content = b""
    with httpx.stream("GET", url, timeout=3.0, follow_redirects=False) as response:
        response.raise_for_status()
        for chunk in response.iter_bytes():
            content += chunk
            if len(content) > MAX_JWKS_BYTES:
                raise KeysUnavailable("The key set is too large.")
    if response.is_redirect:
        raise KeysUnavailable("The key set has moved.")
    return json.loads(content)
