"""The embedded issuer: signs tokens with a key that it makes on first start and never shows."""

import json
import os
import secrets
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import UUID

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from jwt.algorithms import OKPAlgorithm

from factory.identity.config import IdentitySettings, identity_settings
from factory.identity.formats import POOL, POOL_WORDS, TENANT, subject_fault
from factory.identity.keys import FileKeys
from factory.kernel.clock import now
from factory.kernel.hashing import digest

KEY_FILE = "issuer.pem"
_made = threading.Lock()


class IssuerOff(Exception):
    """The embedded issuer is switched off: another issuer speaks for everybody here."""


class NotIssuable(Exception):
    """Nobody would take such a token, so none is signed."""


def issue(
    *,
    subject: str,
    audience: str,
    ttl_seconds: int,
    claims: dict[str, Any],
    config: IdentitySettings | None = None,
) -> str:
    """Return a signed token. Whatever it claims, memberships still decide what its subject may do.

    It is stamped by the database's clock, as revocations are: this machine's may be wrong. Raises
    `IssuerOff`, and `NotIssuable` for a subject that no token may have.
    """
    section = config or identity_settings()
    if not section.embedded:
        raise IssuerOff(
            "The embedded issuer is off (FACTORY_EMBEDDED_ISSUER); ask your own issuer for a token."
        )
    fault = subject_fault(subject)
    if fault:
        raise NotIssuable(f"No token is issued for this: {fault}.")
    private = signing_key(section)
    issued_at = int(now().timestamp())
    body = {
        **claims,
        "iss": section.embedded_issuer,
        "aud": audience,
        "sub": subject,
        "iat": issued_at,
        "exp": issued_at + ttl_seconds,
        "jti": secrets.token_urlsafe(16),
    }
    headers = {"kid": public_jwk(private.public_key())["kid"], "typ": "at+jwt"}
    return jwt.encode(body, private, algorithm="EdDSA", headers=headers)


def issue_person_token(
    subject: str,
    *,
    tenant_id: str,
    project_id: UUID | None = None,
    scopes: Iterable[str] = (),
    roles: Iterable[str] | None = None,
    service: bool = False,
    ttl_seconds: int = 3600,
    config: IdentitySettings | None = None,
) -> str:
    """A token for a person or a service account in one tenant, and one project if it names one."""
    section = config or identity_settings()
    if not TENANT.fullmatch(tenant_id):
        raise NotIssuable("No tenant can be called so.")
    claims: dict[str, Any] = {
        section.claims.tenant: tenant_id,
        section.claims.scope: " ".join(sorted(scopes)),
    }
    if project_id is not None:
        claims[section.claims.project] = str(project_id)
    if roles is not None:
        claims[section.claims.roles] = sorted(roles)
    if service:
        claims["client_id"] = subject
    return issue(
        subject=subject,
        audience=section.person_audience,
        ttl_seconds=ttl_seconds,
        claims=claims,
        config=section,
    )


def issue_worker_token(
    subject: str, *, pool: str, ttl_seconds: int = 86400, config: IdentitySettings | None = None
) -> str:
    """A token for a worker of a pool."""
    section = config or identity_settings()
    if not POOL.fullmatch(pool):
        raise NotIssuable(f"No pool can be called so. {POOL_WORDS}")
    claims = {section.claims.pool: pool, section.claims.scope: "factory.worker"}
    return issue(
        subject=subject,
        audience=section.worker_audience,
        ttl_seconds=ttl_seconds,
        claims=claims,
        config=section,
    )


def jwks(config: IdentitySettings | None = None) -> dict[str, Any]:
    """The public half, for `/.well-known/jwks.json`; an empty set where the issuer is off."""
    section = config or identity_settings()
    if not section.embedded:
        return {"keys": []}
    return {"keys": [public_jwk(signing_key(section).public_key())]}


def public_jwk(key: Ed25519PublicKey) -> dict[str, Any]:
    material: dict[str, Any] = json.loads(OKPAlgorithm.to_jwk(key))
    kid = digest(material).removeprefix("sha256:")[:32]
    return {**material, "use": "sig", "alg": "EdDSA", "kid": kid}


def embedded_keys(config: IdentitySettings) -> FileKeys:
    """Return our own public key as a key source that follows its file; made now if there is none yet."""
    return FileKeys(config.secrets_dir / KEY_FILE, read=lambda: jwks(config))


def signing_key(config: IdentitySettings) -> Ed25519PrivateKey:
    """The key of this installation, made now if there is none yet."""
    path = config.secrets_dir / KEY_FILE
    with _made:
        if not path.exists():
            _make(path)
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise TypeError(f"{path} holds no Ed25519 key.")
    return key


def _make(path: Path) -> None:
    """Write a new key beside its place and link it in: of two processes that start at once, one wins."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    pem = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
