"""Who comes by a token: the member whose verified address, or own subject, it carries."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from factory.identity.config import identity_settings
from factory.identity.principals import NO_GRANTS, TWO_MEMBERS
from factory.identity.tokens import verifier
from tests.projects.people import IDP, OTHER, add, enter, join, refusal
from tests.support.issuers import Outside, outside


def test_a_verified_address_is_the_member_who_has_it(w, idp: Outside):
    for claims in ({"email": w.reviewer.actor.subject}, {"email": w.reviewer.actor.subject.upper()}):
        ctx = enter(idp.token(w, "opaque-7", email_verified=True, **claims))
        assert (ctx.actor.subject, ctx.actor.person) == (w.reviewer.actor.subject, w.reviewer.actor.person)
        assert ctx.actor.roles == {"Reviewer"}
    add(w, "auth0|bob", ("Operator",), email="bob@acme.test")
    bob = enter(idp.token(w, "opaque-8", email="bob@acme.test", email_verified=True))
    assert (bob.actor.subject, bob.actor.roles) == ("auth0|bob", {"Operator"})


@pytest.mark.parametrize(
    "claims", [{}, {"email_verified": False}, {"email_verified": "true"}, {"email_verified": 1}]
)
def test_an_address_that_nobody_verified_is_nobody(w, idp: Outside, claims):
    address = w.reviewer.actor.subject
    assert refusal(idp.token(w, "opaque-7", email=address, **claims)) == NO_GRANTS
    assert refusal(idp.token(w, address, email=address, **claims)) == NO_GRANTS


def test_the_names_of_the_claims_are_settings(w, idp: Outside, settings):
    claims = {**settings.IDENTITY["claims"], "email": "mail", "email_verified": "mail_ok"}
    settings.IDENTITY = {**settings.IDENTITY, "claims": claims}
    verifier.cache_clear()
    token = idp.token(w, "opaque-7", mail=w.reviewer.actor.subject, mail_ok=True)
    assert enter(token).actor.subject == w.reviewer.actor.subject
    token = idp.token(w, "opaque-7", email=w.reviewer.actor.subject, email_verified=True)
    assert refusal(token) == NO_GRANTS


def test_a_machine_is_nobody_by_an_address(w, idp: Outside):
    token = idp.token(
        w, "client-1", client_id="client-1", email=w.reviewer.actor.subject, email_verified=True
    )
    assert refusal(token) == NO_GRANTS


def test_of_several_issuers_none_may_say_whose_any_address_is(w, two):
    """Else each of them could be everybody: a partner's issuer would be the boss."""
    for issuer in two:
        claims = {"email": w.reviewer.actor.subject, "email_verified": True}
        assert refusal(issuer.token(w, "opaque-7", **claims)) == NO_GRANTS


def test_an_issuer_is_believed_about_the_addresses_of_its_domains_alone(w, tmp_path):
    domain = w.reviewer.actor.subject.rpartition("@")[2]
    add(w, "bob@partner.test")
    with outside(tmp_path, IDP, OTHER, domains={IDP: [domain.upper()], OTHER: ["partner.test"]}) as (
        one,
        other,
    ):
        ann = {"email": w.reviewer.actor.subject, "email_verified": True}
        bob = {"email": "bob@partner.test", "email_verified": True}
        assert enter(one.token(w, "opaque-7", **ann)).actor.subject == w.reviewer.actor.subject
        assert enter(other.token(w, "opaque-7", **bob)).actor.subject == "bob@partner.test"
        assert refusal(other.token(w, "opaque-7", **ann)) == NO_GRANTS
        assert refusal(one.token(w, "opaque-7", **bob)) == NO_GRANTS
        assert refusal(one.token(w, "opaque-7", email="bob@sub.partner.test", email_verified=True)) == (
            NO_GRANTS
        )


def test_an_issuer_with_domains_is_not_believed_beyond_them_where_it_is_the_only_one(w, tmp_path):
    with outside(tmp_path, IDP, domains={IDP: ["elsewhere.test"]}) as (one,):
        claims = {"email": w.reviewer.actor.subject, "email_verified": True}
        assert refusal(one.token(w, "opaque-7", **claims)) == NO_GRANTS


def test_only_our_own_issuer_speaks_for_our_service_accounts(w, tmp_path):
    bot = w.service.actor.subject
    with outside(tmp_path, IDP) as (one,):
        assert refusal(one.token(w, bot, client_id=bot)) == NO_GRANTS
    with outside(tmp_path, IDP, service_accounts={IDP: True}) as (opted_in,):
        assert enter(opted_in.token(w, bot, client_id=bot)).actor.subject == bot


@pytest.mark.parametrize(
    "marks",
    [
        {"client_id": "ci-bot", "azp": "ci-bot", "gty": "client-credentials"},
        {"gty": ["client-credentials"]},
        {"azp": "ci-bot", "idtyp": "app"},
        {"azp": "f0b7"},
        {"acting": "itself"},
    ],
)
def test_a_client_that_acts_for_itself_is_a_machine_whatever_its_subject(w, tmp_path, marks):
    """Also where an administrator made its subject a member: it never decides."""
    add(w, "f0b7")
    own = {"machine_claims": {IDP: {"acting": "itself"}}} if "acting" in marks else {}
    with outside(tmp_path, IDP, **own) as (one,):
        assert enter(one.token(w, "f0b7", **marks)).actor.kind == "service"
        others = {"client_id": "console", "azp": "console", "gty": "password", "idtyp": "user"}
        assert enter(one.token(w, "f0b7", **others)).actor.kind == "person"


@pytest.mark.parametrize(
    "wrong",
    [
        {"domains": "acme.test"},
        {"domains": ["@acme.test"]},
        {"domains": [""]},
        {"domains": [7]},
        {"machine_claims": ["gty"]},
        {"machine_claims": {"gty": True}},
        {"service_accounts": "yes"},
        {"domain": ["acme.test"]},
    ],
)
def test_an_issuer_that_is_set_otherwise_is_refused_at_start(tmp_path, settings, wrong):
    entry = {"issuer": IDP, "jwks_file": str(tmp_path / "keys.json"), **wrong}
    settings.IDENTITY = {**settings.IDENTITY, "issuers": [entry]}
    with pytest.raises(ImproperlyConfigured, match=r"FACTORY_TRUSTED_ISSUERS|idp\.example"):
        identity_settings()


def test_the_one_outside_issuers_subject_is_whom_an_administrator_added_by_it(w, idp: Outside):
    add(w, "auth0|bob", ("Operator",))
    assert enter(idp.token(w, "auth0|bob")).actor.roles == {"Operator"}
    assert refusal(idp.token(w, "auth0|eve")) == NO_GRANTS


def test_the_same_subject_of_two_issuers_is_nobody_until_an_administrator_says_whose_it_is(w, two):
    first, second = two
    add(w, "u-1", ("Operator",))
    for issuer in two:
        assert refusal(issuer.token(w, "u-1")) == NO_GRANTS
    join(w, "u-1", "u-1", issuer=IDP)
    assert enter(first.token(w, "u-1")).actor.subject == "u-1"
    assert refusal(second.token(w, "u-1")) == NO_GRANTS


def test_a_token_that_is_two_members_opens_nothing(w, idp: Outside):
    add(w, "auth0|bob", ("Operator",))
    token = idp.token(w, "auth0|bob", email=w.reviewer.actor.subject, email_verified=True)
    assert refusal(token) == TWO_MEMBERS
