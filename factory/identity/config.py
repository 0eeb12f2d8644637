"""Whom we trust to say who somebody is: the issuers, the audiences and the names of the claims."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import ngettext

from factory.kernel.addresses import NoAddress, normal_address

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class TrustedIssuer:
    """One issuer and where its public keys are; with `tenants` it speaks for these alone, and no worker.

    The addresses that it has verified are believed in `domains`. By `machine_claims`, names and values, it
    marks tokens of clients that act for themselves. With `service_accounts` it also speaks for ours.
    """

    issuer: str
    jwks_url: str = ""
    jwks_file: str = ""
    tenants: frozenset[str] | None = None
    domains: frozenset[str] | None = None
    machine_claims: tuple[tuple[str, str], ...] = ()
    service_accounts: bool = False

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

    def speaking_for(self, tenant_id: str) -> list[TrustedIssuer]:
        """Return the outside issuers that speak for a tenant."""
        return [one for one in self.issuers if one.speaks_for(tenant_id)]

    def believed(self, issuer: TrustedIssuer, address: str, tenant_id: str) -> bool:
        """Return whether an issuer is believed that it has verified an address: in its domains; without any,
        where no other issuer speaks for the tenant."""
        if issuer.domains is None:
            return self.speaking_for(tenant_id) == [issuer]
        return issuer.speaks_for(tenant_id) and address.rpartition("@")[2] in issuer.domains


def leeway() -> timedelta:
    """Return by how much the clocks of issuers and the database may differ."""
    return timedelta(seconds=settings.IDENTITY["leeway_seconds"])


def format_leeway() -> str:
    """Return when a token is good again after its credential was revoked, as the end of a sentence."""
    seconds = int(settings.IDENTITY["leeway_seconds"]) + 1
    words = ngettext("once %d second has passed", "once %d seconds have passed", seconds)
    return words % seconds


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
    """Return what is wrong with the section, in words for the person who starts the process."""
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
    unknown = set(entry) - {field.name for field in fields(TrustedIssuer)}
    one_source = bool(entry.get("jwks_url")) != bool(entry.get("jwks_file"))
    if not entry.get("issuer") or unknown or not one_source:
        raise ImproperlyConfigured(
            "Each of FACTORY_TRUSTED_ISSUERS is an object with issuer, either jwks_url or jwks_file, "
            "and perhaps tenants, domains, machine_claims and service_accounts."
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
        domains=_domains(entry),
        machine_claims=_machine_claims(entry),
        service_accounts=_service_accounts(entry),
    )


def _domains(entry: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the domains of an issuer in the spelling of addresses; raises `ImproperlyConfigured`."""
    given = entry.get("domains")
    if given is None:
        return None
    try:
        if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
            raise NoAddress("It is no list of texts.")
        return frozenset(normal_address(f"x@{one}").removeprefix("x@") for one in given)
    except NoAddress as fault:
        raise ImproperlyConfigured(
            f"The domains of {entry['issuer']} are a list of domains of addresses, such as acme.example."
        ) from fault


def _machine_claims(entry: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    given = entry.get("machine_claims", {})
    if not isinstance(given, dict) or not all(isinstance(value, str) and value for value in given.values()):
        raise ImproperlyConfigured(
            f"The machine_claims of {entry['issuer']} are an object of claims and the value that each has in "
            "the token of a machine."
        )
    return tuple(given.items())


def _service_accounts(entry: Mapping[str, Any]) -> bool:
    given = entry.get("service_accounts", False)
    if not isinstance(given, bool):
        raise ImproperlyConfigured(f"The service_accounts of {entry['issuer']} are true or false.")
    return given
