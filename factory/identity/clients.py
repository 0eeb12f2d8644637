"""From where a caller comes: the address by which failed tries are counted."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from django.conf import settings
from django.http import HttpRequest

Address = IPv4Address | IPv6Address
ONE_CALLER = 64
"""Bits of an IPv6 address that one caller is given: the rest they choose as they like."""


def client_address(peer: str, forwarded: str = "") -> str:
    """Return the address of a caller, or of its IPv6 network; nothing where there is none.

    `peer` is who holds the connection. Only if that is one of `FACTORY_TRUSTED_PROXIES`, X-Forwarded-For is
    read, from its end, as far as trusted proxies wrote it: what a caller puts into it is believed by nobody.
    """
    at = _parsed(peer)
    for hop in reversed(forwarded.split(",")):
        before = _parsed(hop) if at is not None and _is_proxy(at) else None
        if before is None:
            break
        at = before
    if isinstance(at, IPv6Address):
        return str(IPv6Network((at, ONE_CALLER), strict=False).network_address)
    return "" if at is None else str(at)


def address_of(request: HttpRequest) -> str | None:
    """Return the address of who sent a request, as failed tries keep it."""
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "")
    return client_address(request.META.get("REMOTE_ADDR", ""), forwarded) or None


def _is_proxy(address: Address) -> bool:
    return any(address in network for network in settings.FACTORY_TRUSTED_PROXIES)


def _parsed(text: str) -> Address | None:
    """Return the address in a text, which may have a port; an IPv4 address within IPv6 is the former."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found
