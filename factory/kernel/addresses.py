"""Addresses of people, in the one spelling in which they are kept and compared.

By an address it is known that two sign-ins are one person, so no two spellings of one may pass for two
people, nor two that look alike: an address is plain ASCII in small letters. The part before the @ is small
too (no mail system in use tells people apart by it), and a domain in other letters stands in its ASCII form.
"""

import re
import unicodedata

import idna

from factory.kernel.text import hides

LONGEST = 254
_LOCAL = re.compile(r"[a-z0-9!#$%&'*+/=?^_`{}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{}~-]+)*")
_DOMAIN = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
OPAQUE = re.compile(r"[!-~]{1,255}")
"""The subject of somebody whom an issuer knows by something else than an address: as tokens can carry it."""


class NoAddress(ValueError):
    """It is no address of a person; its words say why."""


def is_address(subject: str) -> bool:
    """Return whether a subject is meant to be an address: `auth0|x@y` and `service:x` are names of others."""
    return "@" in subject and not set(subject) & {":", "|"}


def normal_address(text: str) -> str:
    """Return an address as it is kept and compared. Raises `NoAddress`."""
    if hides(text):
        raise NoAddress("It has a character that cannot be seen, or that breaks or turns the line.")
    plain = unicodedata.normalize("NFKC", text).strip().lower()
    local, at, domain = plain.rpartition("@")
    if not at or not _LOCAL.fullmatch(local) or len(local) > 64:
        raise NoAddress(
            "It is no address like ann@example.org. Before the @ stand the letters a to z, digits and marks: "
            "other letters look alike."
        )
    found = f"{local}@{_ascii(domain)}"
    if len(found) > LONGEST:
        raise NoAddress(f"An address has at most {LONGEST} characters.")
    return found


def _ascii(domain: str) -> str:
    try:
        found = domain if domain.isascii() else idna.encode(domain, uts46=True).decode()
    except idna.IDNAError as fault:
        raise NoAddress("The part after the @ is no domain.") from fault
    if not _DOMAIN.fullmatch(found):
        raise NoAddress("The part after the @ is no domain.")
    return found


def normal_subject(subject: str) -> str:
    """Return a person's subject as it is kept: an address as such, anything else exactly, without blanks
    around it. Raises `NoAddress`."""
    if is_address(subject):
        return normal_address(subject)
    if hides(subject):
        raise NoAddress("It has a character that cannot be seen, or that breaks or turns the line.")
    found = subject.strip()
    if not OPAQUE.fullmatch(found):
        raise NoAddress(
            "A subject is an address, or what an issuer calls somebody: 1 to 255 visible ASCII characters "
            "without blanks."
        )
    return found


def addresses_in(*texts: str) -> frozenset[str]:
    """Return the addresses among some texts, each in its normal spelling; what is none is left out."""
    found = set()
    for text in texts:
        try:
            found.add(normal_address(text) if is_address(text) else "")
        except NoAddress:
            continue
    return frozenset(found - {""})
