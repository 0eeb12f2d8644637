"""What can be issued can be revoked, and stays revoked, whatever clocks and lengths there are."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.core.management import CommandError, call_command
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from factory.identity.config import IdentitySettings, TrustedIssuer, identity_settings
from factory.identity.formats import MOST_SUBJECT
from factory.identity.issuer import NotIssuable, issue_person_token, public_jwk
from factory.identity.keys import parse_jwks
from factory.identity.principals import admit, context_of
from factory.identity.tokens import Token, TokenRefused, Verifier, verifier
from factory.kernel.clock import now
from factory.kernel.context import Context
from factory.kernel.models import RevokedToken
from projects.commands import revoke_credential, revoke_token
from runs.commands import revoke_worker
from runs.models import Worker
from tests.support.api import Api, token_of, worker_token
from tests.support.clocks import application_clock
from tests.support.evidence import audits
from tests.support.running import House
from tests.support.world import World, world

TEN_MINUTES = 600
LEEWAY = settings.IDENTITY["leeway_seconds"]
VISIBLE = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=MOST_SUBJECT)


@pytest.fixture
def home(tenant_id: str) -> World:
    return world(tenant_id)


def enters(token: str) -> bool:
    try:
        context_of(verifier().verify(token), channel="api", correlation_id=uuid4())
    except TokenRefused:
        return False
    return True


def good(token: Token) -> bool:
    try:
        admit(token)
    except TokenRefused:
        return False
    return True


@pytest.mark.parametrize("length", [1, 247, 248, 254, 255])
def test_a_subject_of_any_length_that_can_be_issued_can_be_revoked(home: World, length: int) -> None:
    subject = "s" * length
    token = issue_person_token(subject, tenant_id=home.tenant)
    assert good(verifier().verify(token))
    answer = Api.as_(home.tenant_admin, project_id=None).post(
        "/factory/revocations", {"subject": subject, "reason": "lost"}
    )
    assert answer.status_code == 201, answer.content
    assert not good(verifier().verify(token))
    assert [note.subject for note in audits(home.system(), "RevokeCredential")] == [f"subject:{subject}"]


@hypothesis_settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=VISIBLE)
@example(name="~" * MOST_SUBJECT)
def test_whatever_is_taken_is_revoked_by_its_subject_and_by_its_id(home: World, name: str) -> None:
    end = now() + timedelta(hours=1)
    by_subject = Token("i", name, "person", frozenset(), end, now(), tenant_id=home.tenant)
    by_id = Token("i", "u", "person", frozenset(), end, now(), jti=name, tenant_id=home.tenant)
    revoke_credential(home.tenant_admin, subject=name, reason="lost")
    revoke_token(home.tenant_admin, jti=name, reason="lost")
    assert not good(by_subject)
    assert not good(by_id)


@pytest.mark.parametrize("subject", ["", "s" * 256, "two words", "é", "system:Relay", "policy:x"])
def test_no_token_is_issued_for_a_subject_that_nobody_would_take(subject: str) -> None:
    with pytest.raises(NotIssuable):
        issue_person_token(subject, tenant_id="t")
    with pytest.raises(CommandError):
        call_command("issue_token", subject=subject, worker_pool="demo")


@pytest.mark.parametrize("pool", ["p" * 65, "Upper", "../x", ""])
def test_no_token_is_issued_for_a_pool_that_cannot_be(pool: str) -> None:
    with pytest.raises(NotIssuable):
        worker_token(pool=pool)


@pytest.mark.parametrize("ahead", [TEN_MINUTES, -TEN_MINUTES, 0])
def test_a_workers_revocation_holds_whatever_the_application_s_clock_says(tenant_id: str, ahead: int) -> None:
    house = House(tenant_id)
    house.hand()
    row = Worker.objects.get(pool_id=house.pool, name="w1")
    with application_clock(ahead):
        token = worker_token(row.subject, pool=house.pool)
        assert enters(token), "the clock of this machine is nobody's judge"
        revoke_worker(house.world.operator, worker_id=row.id, reason="its host was lost")
        assert not enters(token)
        _time_passes(row.subject, seconds=LEEWAY + 1)
        assert enters(worker_token(row.subject, pool=house.pool)), "issued again after the leeway"


@pytest.mark.parametrize("ahead", [TEN_MINUTES, -TEN_MINUTES, 4, 0])
def test_a_subjects_revocation_holds_and_a_token_of_after_the_leeway_is_good(home: World, ahead: int) -> None:
    subject = home.operator.actor.subject
    with application_clock(ahead):
        token = token_of(home.operator)
        assert enters(token)
        revoke_credential(home.tenant_admin, subject=subject, reason="a laptop was lost")
        assert not enters(token)
        with pytest.raises(CommandError, match=f"once {LEEWAY + 1} seconds have passed"):
            call_command("issue_token", subject=subject, tenant=home.tenant)
        _time_passes(subject, seconds=LEEWAY + 1)
        assert enters(token_of(home.operator))


def _time_passes(subject: str, seconds: float) -> None:
    """So much time passes since the revocation."""
    for row in RevokedToken.objects.filter(subject=subject):
        row.revoked_at -= timedelta(seconds=seconds)
        row.save(update_fields=["revoked_at"])


class Outside:
    """An issuer of one's own, whose clock is its own."""

    def __init__(self, home: World, ahead: float) -> None:
        self.home, self.ahead, self.key = home, ahead, Ed25519PrivateKey.generate()
        public = public_jwk(self.key.public_key())
        config = IdentitySettings((TrustedIssuer("https://o.example", jwks_url="https://o.example/k"),),
                                  False, "urn:x", identity_settings().secrets_dir)  # fmt: skip
        keys = parse_jwks({"keys": [public]})
        source: Any = type("Known", (), {"key": lambda self, kid: keys.get(kid)})()
        self.verifier, self.kid = Verifier(config, {"https://o.example": source}), public["kid"]

    def token(self, who: Context, **changes: Any) -> Token:
        at = int(now().timestamp() + self.ahead)
        body = {"iss": "https://o.example", "aud": "factory-api", "sub": who.actor.subject, "iat": at,
                "exp": at + 3600, "tenant_id": self.home.tenant, "jti": uuid4().hex}  # fmt: skip
        signed = jwt.encode(body | changes, self.key, algorithm="EdDSA", headers={"kid": self.kid})
        return self.verifier.verify(signed)


@pytest.mark.parametrize(
    ("ahead", "before", "after"), [(0, True, False), (4, True, False), (-TEN_MINUTES, True, False),
                                   (TEN_MINUTES, False, False)]
)  # fmt: skip
def test_an_outside_issuer_s_clock_lets_no_token_outlive_its_revocation(
    home: World, ahead: float, before: bool, after: bool
) -> None:
    outside = Outside(home, ahead)
    token = outside.token(home.operator)
    assert good(token) is before
    revoke_credential(home.tenant_admin, subject=home.operator.actor.subject, reason="lost")
    assert good(token) is after
    later = outside.token(home.operator)
    assert not good(later), "within the leeway nobody can tell it from one of before"


def test_times_of_a_token_are_judged_by_the_database_with_the_leeway_on_both_sides(home: World) -> None:
    outside, at = Outside(home, 0), int(now().timestamp())
    for changes, expected in (
        ({"exp": at - 60}, False),
        ({"exp": at - 1}, True),
        ({"iat": at + 3600, "exp": at + 7200}, False),
        ({"iat": at + LEEWAY - 1}, True),
        ({"nbf": at + 3600}, False),
        ({"exp": 253402300799}, True),
        ({"iat": 0}, True),
    ):
        assert good(outside.token(home.operator, **changes)) is expected, changes
