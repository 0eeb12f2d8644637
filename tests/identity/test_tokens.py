"""Attacks on the bearer token, and what an honest one becomes."""

import base64
import json
import os
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from factory.identity.config import IdentitySettings, TrustedIssuer
from factory.identity.issuer import issue_person_token, issue_worker_token
from factory.identity.keys import FileKeys, KeysUnavailable, RemoteKeys, parse_jwks
from factory.identity.tokens import TokenRefused, Verifier
from factory.kernel.errors import Busy

ISSUER = "https://idp.example"
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
WEAK = rsa.generate_private_key(public_exponent=65537, key_size=1024)
EC = ec.generate_private_key(ec.SECP256R1())
OKP = Ed25519PrivateKey.generate()
PROJECT = "01890000-0000-7000-8000-000000000001"


def jwk(text: str, kid: str) -> dict[str, Any]:
    return {**json.loads(text), "kid": kid, "use": "sig"}


JWKS = {
    "keys": [
        jwk(RSAAlgorithm.to_jwk(RSA.public_key()), "r"),
        jwk(RSAAlgorithm.to_jwk(WEAK.public_key()), "weak"),
        jwk(ECAlgorithm.to_jwk(EC.public_key()), "e"),
        jwk(OKPAlgorithm.to_jwk(OKP.public_key()), "o"),
        {"kty": "oct", "kid": "secret", "k": base64.urlsafe_b64encode(b"s" * 32).decode(), "alg": "HS256"},
    ]
}


@pytest.fixture
def config(tmp_path: Path) -> IdentitySettings:
    trusted = (
        TrustedIssuer(ISSUER, jwks_url=f"{ISSUER}/jwks"),
        TrustedIssuer(
            "https://narrow.example", jwks_url="https://narrow.example/jwks", tenants=frozenset({"a"})
        ),
    )
    return IdentitySettings(trusted, True, "urn:factory:embedded", tmp_path / "secrets")


class Server:
    """The issuer's key server, counting who asks."""

    def __init__(self) -> None:
        self.asked = 0
        self.document: Any = JWKS
        self.now = 1000.0

    def fetch(self, url: str) -> Any:
        self.asked += 1
        if isinstance(self.document, Exception):
            raise self.document
        return self.document

    def keys(self) -> RemoteKeys:
        return RemoteKeys(f"{ISSUER}/jwks", fetch=self.fetch, clock=lambda: self.now)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def verifier(config: IdentitySettings, server: Server) -> Verifier:
    keys = server.keys()
    return Verifier(config, {ISSUER: keys, "https://narrow.example": keys})


def claims(**changes: Any) -> dict[str, Any]:
    now = int(time.time())
    body = {
        "iss": ISSUER,
        "aud": "factory-api",
        "sub": "u-1",
        "iat": now,
        "exp": now + 60,
        "jti": "j-1",
        "tenant_id": "a",
        "project_id": PROJECT,
        "scope": "factory.runs.read factory.runs.write",
    }
    body.update(changes)
    return {name: value for name, value in body.items() if value is not ...}


def sign(body: dict[str, Any], key: Any = RSA, alg: str = "RS256", kid: str | None = "r") -> str:
    return jwt.encode(body, key, algorithm=alg, headers={} if kid is None else {"kid": kid})


@pytest.mark.requirement("IDN-03", "SEC-01")
@pytest.mark.parametrize(
    ("key", "alg", "kid"), [(RSA, "RS256", "r"), (EC, "ES256", "e"), (OKP, "EdDSA", "o")]
)
def test_takes_what_a_trusted_issuer_signed(verifier, key, alg, kid):
    token = verifier.verify(sign(claims(), key, alg, kid))
    assert (token.subject, token.tenant_id, str(token.project_id)) == ("u-1", "a", PROJECT)
    assert token.scopes == {"factory.runs.read", "factory.runs.write"}
    assert (token.kind, token.roles, token.pool) == ("person", None, "")


@pytest.mark.parametrize("missing", ["exp", "iat", "aud", "iss", "sub", "tenant_id"])
def test_refuses_a_token_that_leaves_out(verifier, missing):
    with pytest.raises(TokenRefused):
        verifier.verify(sign(claims(**{missing: ...})))


@pytest.mark.requirement("SEC-01")
@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "another-api"},
        {"aud": ["factory-api", "factory-workers"], "pool": "p"},
        {"iss": "https://elsewhere.example"},
        {"iat": -1},
        {"nbf": "soon"},
        {"exp": "never"},
        {"exp": 1e400},
        {"sub": ""},
        {"sub": "a\nb"},
        {"sub": 7},
        {"sub": "system:Relay"},
        {"tenant_id": "' or 1=1"},
        {"tenant_id": ["a"]},
        {"project_id": "not-a-uuid"},
        {"scope": {"factory.runs.read": True}},
        {"roles": [["Reviewer"]]},
        {"jti": 5},
        {"jti": "j" * 256},
        {"jti": "two words"},
    ],
)
def test_refuses_a_signed_token_with(verifier, changes):
    with pytest.raises(TokenRefused):
        verifier.verify(sign(claims(**changes)))


@pytest.mark.requirement("IDN-03", "SEC-01")
def test_refuses_an_unsigned_token(verifier):
    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    for alg in ("none", "None", "NONE", ""):
        for tail in ("", "AAAA"):
            with pytest.raises(TokenRefused):
                verifier.verify(f"{part({'alg': alg, 'kid': 'r'})}.{part(claims())}.{tail}")


@pytest.mark.requirement("SEC-01")
def test_refuses_a_public_key_used_as_a_shared_secret(verifier):
    public = RSA.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"r","typ":"JWT"}').rstrip(b"=")
    body = base64.urlsafe_b64encode(json.dumps(claims()).encode()).rstrip(b"=")
    import hashlib
    import hmac

    mac = hmac.new(public, head + b"." + body, hashlib.sha256).digest()
    forged = b".".join((head, body, base64.urlsafe_b64encode(mac).rstrip(b"="))).decode()
    with pytest.raises(TokenRefused):
        verifier.verify(forged)


def test_refuses_a_symmetric_key_that_the_issuer_lists(verifier):
    with pytest.raises(TokenRefused):
        verifier.verify(sign(claims(), b"s" * 32, "HS256", "secret"))


def test_refuses_a_key_of_another_algorithm_a_weak_key_and_no_key_id(verifier):
    for key, alg, kid in (
        (RSA, "RS256", "e"),
        (RSA, "RS512", "r"),
        (WEAK, "RS256", "weak"),
        (RSA, "RS256", None),
    ):
        with pytest.raises(TokenRefused):
            verifier.verify(sign(claims(), key, alg, kid))


def test_refuses_keys_that_the_token_itself_brings(verifier):
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    own = json.loads(RSAAlgorithm.to_jwk(stranger.public_key()))
    for headers in ({"kid": "r", "jwk": own}, {"kid": "r", "jku": "https://evil.example/jwks"}):
        with pytest.raises(TokenRefused):
            verifier.verify(jwt.encode(claims(), stranger, algorithm="RS256", headers=headers))


@pytest.mark.parametrize("garbage", ["", ".", "a.b.c", "x" * 9000, "é.é.é", "..", "e30.e30.", "W10.W10.W10"])
def test_refuses_garbage(verifier, garbage):
    with pytest.raises(TokenRefused):
        verifier.verify(garbage)


def test_asks_the_issuer_once_however_many_key_ids_are_made_up(verifier, server):
    for n in range(200):
        with pytest.raises(TokenRefused):
            verifier.verify(sign(claims(), kid=f"made-up-{n}"))
    assert server.asked == 1


def test_learns_a_rotated_key_after_half_a_minute(verifier, server):
    verifier.verify(sign(claims()))
    new = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    server.document = {"keys": [jwk(RSAAlgorithm.to_jwk(new.public_key()), "r2")]}
    server.now += 31
    assert verifier.verify(sign(claims(), new, "RS256", "r2")).subject == "u-1"
    with pytest.raises(TokenRefused):
        verifier.verify(sign(claims()))
    assert server.asked == 2


def test_goes_on_with_known_keys_for_an_hour_without_the_issuer(verifier, server):
    verifier.verify(sign(claims()))
    server.document = KeysUnavailable("down")
    server.now += 1800
    assert verifier.verify(sign(claims())).subject == "u-1"
    server.now += 1900
    with pytest.raises(Busy):
        verifier.verify(sign(claims()))


def test_a_worker_token_carries_a_pool_and_nothing_of_a_tenant(verifier):
    worker = {"aud": "factory-workers", "pool": "demo", "tenant_id": ..., "project_id": ...}
    token = verifier.verify(sign(claims(**worker)))
    assert (token.kind, token.pool, token.tenant_id, token.scopes) == (
        "worker",
        "demo",
        "",
        {"factory.worker"},
    )
    for wrong in ({"pool": ...}, {"tenant_id": "a"}, {"pool": "../x"}):
        with pytest.raises(TokenRefused):
            verifier.verify(sign(claims(**{**worker, **wrong})))


def test_a_person_cannot_take_the_workers_scope(verifier):
    assert verifier.verify(sign(claims(scope="factory.worker factory.runs.read"))).scopes == {
        "factory.runs.read"
    }


def test_an_issuer_for_some_tenants_speaks_for_no_other_and_no_worker(verifier):
    narrow = {"iss": "https://narrow.example"}
    assert verifier.verify(sign(claims(**narrow))).tenant_id == "a"
    with pytest.raises(TokenRefused):
        verifier.verify(sign(claims(tenant_id="b", **narrow)))
    worker = {"aud": "factory-workers", "pool": "demo", "tenant_id": ..., "project_id": ...}
    with pytest.raises(TokenRefused):
        verifier.verify(sign(claims(**worker, **narrow)))


def test_the_embedded_issuer_makes_a_private_key_and_good_tokens(config):
    verifier = Verifier(config, None)
    person = verifier.verify(
        issue_person_token("u-2", tenant_id="a", scopes=["factory.runs.read"], config=config)
    )
    worker = verifier.verify(issue_worker_token("w-1", pool="demo", config=config))
    assert (person.subject, person.tenant_id, person.project_id, worker.pool) == ("u-2", "a", None, "demo")
    assert person.jti
    assert person.jti != worker.jti
    key = config.secrets_dir / "issuer.pem"
    assert key.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in config.secrets_dir.iterdir()] == ["issuer.pem"]


def test_a_file_of_keys_is_read_again_when_it_changes(tmp_path):
    path = tmp_path / "jwks.json"
    keys = FileKeys(path)
    with pytest.raises(KeysUnavailable):
        keys.key("r")
    path.write_text(json.dumps(JWKS))
    assert keys.key("r") is not None
    path.write_text(json.dumps({"keys": []}))
    assert keys.key("r") is None


def test_a_key_file_in_anothers_place_counts_within_seconds_although_it_looks_the_same(tmp_path):
    """`cp -p`, a restore or a mount keeps size and times; a page cache may hide the rest."""
    path, now = tmp_path / "jwks.json", [100.0]
    path.write_text(json.dumps({"keys": [JWKS["keys"][0]]}))
    keys = FileKeys(path, clock=lambda: now[0])
    assert keys.key("r") is not None
    told = json.dumps({"keys": [JWKS["keys"][0] | {"kid": "q"}]})
    other = tmp_path / "other"
    other.write_text(told)
    os.utime(other, ns=(path.stat().st_mtime_ns,) * 2)
    other.replace(path)
    assert (keys.key("r"), keys.key("q") is not None) == (None, True)
    now[0] += 1
    seen = FileKeys(path, read=lambda: JWKS if now[0] > 102 else {"keys": []}, clock=lambda: now[0])
    assert seen.key("r") is None
    now[0] += 1.9
    assert seen.key("r") is None, "so far as the file tells, nothing has changed"
    now[0] += 0.1
    assert seen.key("r") is not None


def test_another_key_of_the_embedded_issuer_counts_at_once_in_running_processes(config):
    running = Verifier(config, None)
    old = issue_worker_token("w-1", pool="demo", config=config)
    running.verify(old)
    (config.secrets_dir / "issuer.pem").unlink()
    new = issue_worker_token("w-1", pool="demo", config=config)
    assert running.verify(new).subject == "w-1"
    with pytest.raises(TokenRefused):
        running.verify(old)
    (config.secrets_dir / "issuer.pem").write_bytes(b"half a k")
    with pytest.raises(Busy):
        running.verify(new)


def test_a_key_set_gives_only_strong_public_signing_keys():
    assert set(parse_jwks(JWKS)) == {"r", "e", "o"}
    with pytest.raises(KeysUnavailable):
        parse_jwks(["r"])
