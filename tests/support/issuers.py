"""Issuers outside the house that a test trusts: each signs with a key of its own."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.test import override_settings
from jwt.algorithms import OKPAlgorithm

from factory.identity.tokens import verifier
from tests.support.world import ALL, World


@dataclass(frozen=True)
class Outside:
    """An issuer, and how it signs what it likes."""

    issuer: str
    key: Ed25519PrivateKey

    def token(self, w: World, subject: str, **claims: Any) -> str:
        """Return a token of this issuer for the world's tenant and project."""
        now = int(time.time())
        body = {
            "iss": self.issuer,
            "aud": settings.IDENTITY["person_audience"],
            "sub": subject,
            "iat": now,
            "exp": now + 600,
            "jti": f"{self.issuer}-{subject}-{time.time_ns()}",
            "tenant_id": w.tenant,
            "project_id": str(w.project),
            "scope": " ".join(sorted(ALL)),
            **claims,
        }
        return jwt.encode(body, self.key, algorithm="EdDSA", headers={"kid": "one"})


@contextmanager
def outside(
    folder: Path, *names: str, tenants: list[str] | None = None, **settings_of: dict[str, Any]
) -> Iterator[list[Outside]]:
    """Trust these issuers besides the house's own, for the while; `domains={name: …}` and the like set
    what is set for each."""
    made, entries = [], []
    for number, name in enumerate(names):
        one = Outside(name, Ed25519PrivateKey.generate())
        public = json.loads(OKPAlgorithm.to_jwk(one.key.public_key()))
        file = folder / f"jwks-{number}.json"
        file.write_text(json.dumps({"keys": [{**public, "kid": "one", "use": "sig", "alg": "EdDSA"}]}))
        own = {key: value[name] for key, value in settings_of.items() if name in value}
        entry: dict[str, Any] = {"issuer": name, "jwks_file": str(file), **own}
        entries.append(entry if tenants is None else {**entry, "tenants": tenants})
        made.append(one)
    with override_settings(IDENTITY={**settings.IDENTITY, "issuers": entries}):
        verifier.cache_clear()
        yield made
    verifier.cache_clear()
