"""A bearer token becomes a `Token` only if a trusted issuer signed exactly this, and for us."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import jwt
import structlog
from django.core.exceptions import ImproperlyConfigured
from jwt.types import Options

from factory.identity.config import ClaimNames, IdentitySettings, TrustedIssuer, check, identity_settings
from factory.identity.directory import SignIn
from factory.identity.formats import JTI, POOL, TENANT, subject_fault
from factory.identity.keys import ALGORITHMS, FileKeys, KeySource, KeysUnavailable, RemoteKeys
from factory.kernel.addresses import addresses_in, is_address
from factory.kernel.errors import Busy, Unauthenticated

MAX_TOKEN_LENGTH = 8192
REQUIRED = ["exp", "iat", "aud", "iss", "sub"]
OPTIONS: Options = {"require": REQUIRED, "verify_exp": False, "verify_iat": False, "verify_nbf": False}
"""A token's times are judged by `factory.identity.principals.admit`, by the database's clock."""
MACHINES = "service:"
"""How the control plane itself names service accounts: nobody is called so by accident."""
CLIENTS = ("client_id", "azp", "cid", "appid")
"""The claims that name the client; RFC 9068: one that acts for itself is the subject as well."""
OF_MACHINES = (("gty", "client-credentials"), ("gty", "client_credentials"), ("idtyp", "app"))
"""How issuers mark a client's own token where its subject is another name of it."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Token:
    """A token whose signature and claims are good; of its times and revocation `admit` is the judge.

    `roles` is None where it asserts none.

    `address` is the person's, where the issuer says that it has verified it; `ours` and `alone` say how far
    the subject is a member's, see `SignIn`.
    """

    issuer: str
    subject: str
    kind: str
    scopes: frozenset[str]
    expires_at: datetime
    issued_at: datetime
    not_before: datetime | None = None
    jti: str = ""
    tenant_id: str = ""
    project_id: UUID | None = None
    roles: frozenset[str] | None = None
    pool: str = ""
    address: str = ""
    ours: bool = False
    alone: bool = False

    @property
    def identity(self) -> SignIn:
        """Return who the issuer says that this is, for the directory to find the person."""
        return SignIn(self.issuer, self.subject, self.address, self.ours, self.alone)


class TokenRefused(Unauthenticated):
    """The token is not good. Every caller hears the same words; the reason is for our own log.

    Only who holds a token that was good is told that its time is over: the signature was checked first.
    """

    code = "invalid-token"

    def __init__(
        self,
        reason: str,
        *,
        words: str = "The bearer token is not valid here. Ask for one of this installation.",
    ) -> None:
        super().__init__(words)
        self.reason = reason


class Verifier:
    """Checks tokens against the trusted issuers of one settings section."""

    def __init__(self, config: IdentitySettings, sources: Mapping[str, KeySource] | None = None) -> None:
        faults = check(config)
        if faults:
            raise ImproperlyConfigured(" ".join(faults))
        self._config = config
        self._issuers = {entry.issuer: entry for entry in config.issuers}
        self._sources = dict(sources) if sources is not None else self._default_sources()

    def verify(self, encoded: str) -> Token:
        """Return what a token says that a trusted issuer signed, or raise `TokenRefused`.

        `Busy` while its issuer's keys cannot be had. Whether it is good now, `admit` says.
        """
        try:
            return self._verify(encoded)
        except TokenRefused as refusal:
            log.info("token_refused", reason=refusal.reason)
            raise
        except jwt.PyJWTError as fault:
            log.info("token_refused", reason=type(fault).__name__)
            raise TokenRefused(type(fault).__name__) from fault
        except (ValueError, TypeError, OverflowError, RecursionError) as fault:
            log.info("token_refused", reason=f"malformed: {type(fault).__name__}")
            raise TokenRefused("malformed") from fault

    def _verify(self, encoded: str) -> Token:
        if len(encoded) > MAX_TOKEN_LENGTH:
            raise TokenRefused("too long")
        issuer = self._claimed_issuer(encoded)
        key = self._key(issuer, jwt.get_unverified_header(encoded))
        audiences = [self._config.person_audience, self._config.worker_audience]
        claims: dict[str, Any] = jwt.decode(
            encoded,
            key,
            algorithms=[key.algorithm_name],
            audience=audiences,
            issuer=issuer,
            options=OPTIONS,
        )
        return self._token(claims)

    def _claimed_issuer(self, encoded: str) -> str:
        claims = jwt.decode(encoded, options={"verify_signature": False})
        issuer = claims.get("iss")
        if not isinstance(issuer, str) or issuer not in self._sources:
            raise TokenRefused("issuer not trusted")
        return issuer

    def _key(self, issuer: str, header: Mapping[str, Any]) -> jwt.PyJWK:
        kid, algorithm = header.get("kid"), header.get("alg")
        if algorithm not in ALGORITHMS:
            raise TokenRefused("algorithm not allowed")
        if not isinstance(kid, str) or not 0 < len(kid) <= 200:
            raise TokenRefused("no key id")
        try:
            key = self._sources[issuer].key(kid)
        except KeysUnavailable as fault:
            raise Busy("The issuer's keys cannot be fetched at the moment.") from fault
        if key is None:
            raise TokenRefused("unknown key id")
        if key.algorithm_name != algorithm:
            raise TokenRefused("algorithm differs from the key's")
        return key

    def _token(self, claims: Mapping[str, Any]) -> Token:
        audience = claims["aud"]
        named = {audience} if isinstance(audience, str) else set(audience)
        worker = self._config.worker_audience in named
        if worker and self._config.person_audience in named:
            raise TokenRefused("two audiences of ours")
        fault = subject_fault(claims["sub"])
        if fault:
            raise TokenRefused(fault)
        common: dict[str, Any] = {
            "issuer": claims["iss"],
            "subject": claims["sub"],
            "expires_at": _moment(claims["exp"]),
            "issued_at": _moment(claims["iat"]),
            "not_before": _moment(claims["nbf"]) if "nbf" in claims else None,
            "scopes": _words(claims.get(self._config.claims.scope), "scope"),
            "jti": _jti(claims.get("jti", "")),
        }
        return self._worker_token(claims, common) if worker else self._person_token(claims, common)

    def _worker_token(self, claims: Mapping[str, Any], common: dict[str, Any]) -> Token:
        names = self._config.claims
        if names.tenant in claims or names.project in claims:
            raise TokenRefused("a worker's token names a tenant")
        entry = self._issuers.get(claims["iss"])
        if entry is not None and entry.tenants is not None:
            raise TokenRefused("this issuer speaks for no worker")
        pool = claims.get(names.pool)
        if not isinstance(pool, str) or not POOL.fullmatch(pool):
            raise TokenRefused("no pool")
        return Token(kind="worker", pool=pool, **{**common, "scopes": frozenset({"factory.worker"})})

    def _person_token(self, claims: Mapping[str, Any], common: dict[str, Any]) -> Token:
        names = self._config.claims
        tenant = claims.get(names.tenant)
        if not isinstance(tenant, str) or not TENANT.fullmatch(tenant):
            raise TokenRefused("no tenant")
        entry = self._issuers.get(claims["iss"])
        if entry is not None and not entry.speaks_for(tenant):
            raise TokenRefused("this issuer does not speak for the tenant")
        asserted = claims.get(names.roles)
        service = _is_service(claims, entry)
        return Token(
            kind="service" if service else "person",
            address="" if service or entry is None else self._address(claims, entry, tenant),
            ours=entry is None or (entry.service_accounts and claims["sub"].startswith(MACHINES)),
            alone=self._alone(claims["iss"], claims["sub"], tenant),
            tenant_id=tenant,
            project_id=_project(claims.get(names.project)),
            roles=None if asserted is None else _words(asserted, "roles"),
            **{**common, "scopes": common["scopes"] - {"factory.worker"}},
        )

    def _alone(self, issuer: str, subject: str, tenant_id: str) -> bool:
        """Return whether a `sub` can mean one person of the tenant only. An address never does by itself:
        that somebody has it is believed where the issuer says that it has verified it."""
        speaking = [one.issuer for one in self._config.speaking_for(tenant_id)]
        return speaking == [issuer] and not is_address(subject)

    def _address(self, claims: Mapping[str, Any], entry: TrustedIssuer, tenant_id: str) -> str:
        """Return the address that the issuer has verified, where it is believed."""
        address = _verified_address(claims, self._config.claims)
        return address if address and self._config.believed(entry, address, tenant_id) else ""

    def _default_sources(self) -> dict[str, KeySource]:
        sources: dict[str, KeySource] = {entry.issuer: _source(entry) for entry in self._config.issuers}
        if self._config.embedded:
            from factory.identity.issuer import embedded_keys  # only where the issuer is switched on

            sources[self._config.embedded_issuer] = embedded_keys(self._config)
        return sources


def _is_service(claims: Mapping[str, Any], entry: TrustedIssuer | None) -> bool:
    """Return whether a client acts for itself: it is named as ours are, is the subject, or is marked so."""
    subject: str = claims["sub"]
    if subject.startswith(MACHINES) or any(claims.get(name) == subject for name in CLIENTS):
        return True
    marks = (*OF_MACHINES, *(entry.machine_claims if entry else ()))
    return any(_has(claims.get(name), value) for name, value in marks)


def _has(said: Any, value: str) -> bool:
    """Return whether a claim is a value, or a list that has it."""
    return said == value or (isinstance(said, list) and value in said)


def _verified_address(claims: Mapping[str, Any], names: ClaimNames) -> str:
    """Return the address that the issuer says it has verified; none for any other word than `true`."""
    address = claims.get(names.email)
    if claims.get(names.email_verified) is not True or not isinstance(address, str):
        return ""
    return next(iter(addresses_in(address)), "")


def _source(entry: TrustedIssuer) -> KeySource:
    return RemoteKeys(entry.jwks_url) if entry.jwks_url else FileKeys(Path(entry.jwks_file))


def _moment(value: Any) -> datetime:
    """Return a claim of seconds since 1970 as a time; before that no token was issued."""
    seconds = int(value)
    if seconds < 0:
        raise TokenRefused("a time before 1970")
    return datetime.fromtimestamp(seconds, UTC)


def _jti(value: Any) -> str:
    """Return a token's id, which may be empty: any other can also be revoked."""
    if not isinstance(value, str) or not (value == "" or JTI.fullmatch(value)):
        raise TokenRefused("malformed jti")
    return value


def _words(value: Any, claim: str) -> frozenset[str]:
    """A claim of words: one string with spaces, or a list of strings."""
    if value is None:
        return frozenset()
    words = value.split() if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words) or len(words) > 100:
        raise TokenRefused(f"malformed {claim}")
    return frozenset(words)


def _project(value: Any) -> UUID | None:
    if value is None:
        return None
    try:
        return UUID(value)
    except (ValueError, AttributeError, TypeError) as fault:
        raise TokenRefused("malformed project") from fault


@cache
def verifier() -> Verifier:
    """The verifier of this process."""
    return Verifier(identity_settings())


def bearer(header: str | None) -> str | None:
    """The token of an Authorization header; None where there is no bearer token."""
    scheme, _, encoded = (header or "").partition(" ")
    return encoded.strip() if scheme.lower() == "bearer" and encoded.strip() else None
