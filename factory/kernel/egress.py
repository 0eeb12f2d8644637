"""Where the product connects to by itself: only to public addresses, each looked up once and then used.

A name could lead somewhere else a moment later, so whoever vets an address must connect to that address.
"""

import ipaddress
import re
import socket
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

LONGEST_URL = 2048
_PRINTABLE = re.compile(r"[!-~]+")
_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
_WRAPPINGS = tuple(map(ipaddress.ip_network, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")))
_SPECIAL = ipaddress.ip_network("192.0.0.0/24")


class NotPublic(ValueError):
    """An address, or a name that leads to one, which is not of the open internet."""


@dataclass(frozen=True, slots=True)
class Target:
    """Hold what a URL says, taken apart. `trusted`: an operator named this host and port as one of their
    own."""

    scheme: str
    host: str
    port: int
    path: str
    trusted: bool

    @property
    def authority(self) -> str:
        """For the Host header: the port only where it is not the scheme's own."""
        usual = {"https": 443, "http": 80}[self.scheme]
        return self.host if self.port == usual else f"{self.host}:{self.port}"


def target_of(url: str, trusted: Collection[str] = ()) -> Target:
    """The target behind a URL; `ValueError` says in a sentence why it is none.

    Allowed is `https` to a full host name. A `host:port` that the operator trusts may also be an
    address, a short name, and plain `http`.
    """
    if len(url) > LONGEST_URL or not _PRINTABLE.fullmatch(url) or "\\" in url:
        raise ValueError(f"A URL has at most {LONGEST_URL} printable characters, without spaces.")
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError as fault:
        raise ValueError("The URL has no valid port.") from fault
    if "@" in parts.netloc or parts.fragment:
        raise ValueError("The URL may hold no user, no password and no fragment.")
    if parts.scheme not in ("https", "http"):
        raise ValueError("The URL has to begin with https://.")
    host = parts.hostname or ""
    if port == 0:
        raise ValueError("The URL has no valid port.")
    port = port or (443 if parts.scheme == "https" else 80)
    known = f"{host}:{port}" in trusted
    if parts.scheme == "http" and not known:
        raise ValueError(
            "The URL has to begin with https://, unless the installation trusts its host and port."
        )
    if not known and not _HOST.fullmatch(host):
        raise ValueError("The host has to be a full name, not an address or a short name.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host, port, path, known)


def public_address(host: str, port: int) -> str:
    """The one public address that a name leads to now. A name that also leads elsewhere is refused whole.

    Raises `OSError` for a name that leads nowhere, and `NotPublic`. Blocks for as long as DNS does.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in found]
    if not addresses or not all(is_public(address) for address in addresses):
        raise NotPublic(f"The host {host} leads to an address that is not public.")
    return addresses[0]


def is_public(address: str) -> bool:
    """Tell whether an address is one of the open internet, with the wrappings taken off."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        if any(ip in network for network in _WRAPPINGS):
            return False
        if ip.ipv4_mapped is not None:
            ip = ip.ipv4_mapped
    if ip in _SPECIAL or ip.is_multicast:
        return False
    return ip.is_global
