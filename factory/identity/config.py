"""Whom we trust to say who somebody is: the issuers, the audiences and the names of the claims."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class TrustedIssuer:
    """One issuer and where its public keys are; with `tenants` it speaks for these alone, and no worker."""

    issuer: str
    jwks_url: str = ""
    jwks_file: str = ""
    tenants: frozenset[str] | None = None

    def speaks_for(self, tenant_id: str) -> bool:
        return self.tenants is None or tenant_id in self.tenants


@dataclass(frozen=True)
class ClaimNames:
    tenant: str = "tenant_id"
    project: str = "project_id"
    scope: str = "scope"
    roles: str = "roles"
    pool: str = "pool"
    email: str = "email"
    email_verified: str = "email_verified"


@dataclass(frozen=True)
class IdentitySettings:
    issuers: tuple[TrustedIssuer, ...]
    embedded: bool
    embedded_issuer: str
    secrets_dir: Path
    person_audience: str = "factory-api"
    worker_audience: str = "factory-workers"
    claims: ClaimNames = field(default_factory=ClaimNames)
    leeway_seconds: int = 5


def leeway() -> timedelta:
    """Return by how much the clocks of issuers and the database may differ."""
    return timedelta(seconds=settings.IDENTITY["leeway_seconds"])


def leeway_in_words() -> str:
    """Return when a token is good again after its credential was revoked, as the end of a sentence."""
    seconds = settings.IDENTITY["leeway_seconds"] + 1
    return f"once {seconds} second{'' if seconds == 1 else 's'} have passed"


def identity_settings() -> IdentitySettings:
    """The `IDENTITY` section of the settings, checked."""
    section: Mapping[str, Any] = settings.IDENTITY
    return IdentitySettings(
        issuers=tuple(_issuer(entry) for entry in section["issuers"]),
        embedded=section["embedded"],
        embedded_issuer=section["embedded_issuer"],
        secrets_dir=Path(section["secrets_dir"]),
        person_audience=section["person_audience"],
        worker_audience=section["worker_audience"],
        claims=ClaimNames(**section["claims"]),
        leeway_seconds=section["leeway_seconds"],
    )


def check(section: IdentitySettings) -> Sequence[str]:
    """What is wrong with the section, in words for the person who starts the process."""
    names = [entry.issuer for entry in section.issuers]
    faults = []
    if section.embedded:
        names.append(section.embedded_issuer)
    if len(names) != len(set(names)):
        faults.append("FACTORY_TRUSTED_ISSUERS names an issuer twice.")
    if section.person_audience == section.worker_audience:
        faults.append("People and workers need two audiences, or a worker's token would pass for a person's.")
    return faults


def _issuer(entry: Mapping[str, Any]) -> TrustedIssuer:
    unknown = set(entry) - {"issuer", "jwks_url", "jwks_file", "tenants"}
    one_source = bool(entry.get("jwks_url")) != bool(entry.get("jwks_file"))
    if not entry.get("issuer") or unknown or not one_source:
        raise ImproperlyConfigured(
            "Each of FACTORY_TRUSTED_ISSUERS is an object with issuer, either jwks_url or jwks_file, "
            "and perhaps tenants."
        )
    url = str(entry.get("jwks_url", ""))
    parts = urlsplit(url)
    if url and parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise ImproperlyConfigured(f"The keys of {entry['issuer']} must come by https.")
    tenants = entry.get("tenants")
    return TrustedIssuer(
        issuer=str(entry["issuer"]),
        jwks_url=url,
        jwks_file=str(entry.get("jwks_file", "")),
        tenants=None if tenants is None else frozenset(tenants),
    )
