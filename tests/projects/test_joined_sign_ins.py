"""A sign-in that an administrator has made a member's."""

from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from factory.identity.principals import NO_GRANTS
from factory.identity.tokens import TokenRefused
from factory.kernel.errors import InvalidInput
from projects.commands import end_identity, remove_member, revoke_credential
from projects.errors import IdentityEnded, IdentityTaken, PersonNotMember, RoleOutOfReach
from tests.projects.people import IDP, add, enter, join, refusal, whole
from tests.support.api import Api, problem
from tests.support.evidence import audits, journal, violations
from tests.support.issuers import Outside
from tests.support.world import second_world, subject_of


def test_a_joined_sign_in_is_the_member(w, idp: Outside):
    assert refusal(idp.token(w, "auth0|ann")) == NO_GRANTS
    key = join(w, "auth0|ann", w.reviewer.actor.subject.upper())
    ctx = enter(idp.token(w, "auth0|ann"))
    assert (ctx.actor.subject, ctx.actor.person, ctx.actor.roles) == (
        w.reviewer.actor.subject,
        w.reviewer.actor.person,
        {"Reviewer"},
    )
    (entry,) = [e for e in audits(w.system(), "JoinIdentity") if e.subject == f"identity:{key}"]
    assert (entry.reason, entry.detail["person"]) == ("Seen in person", w.reviewer.actor.subject)
    end_identity(whole(w), identity_id=key, reason="Left the company")
    assert refusal(idp.token(w, "auth0|ann")) == NO_GRANTS
    with pytest.raises(IdentityEnded):
        end_identity(whole(w), identity_id=key, reason="again")
    assert [cause for _, _, cause in journal(w.system(), key)] == ["IdentityJoined", "IdentityEnded"]
    join(w, "auth0|ann", w.reviewer2.actor.subject)
    assert enter(idp.token(w, "auth0|ann")).actor.subject == w.reviewer2.actor.subject
    assert violations(w.tenant) == []


def test_nobody_makes_the_sign_in_that_they_came_by_another_members(w, idp: Outside):
    """Known by their address alone it is in no table yet: they could be that member by it from then on."""
    admin = whole(w).actor.subject
    token = idp.token(w, "auth0|admin", project_id=None, email=admin, email_verified=True)
    ctx = enter(token)
    assert ctx.actor.subject == admin
    with pytest.raises(IdentityTaken, match="Your own sign-in"):
        join(w, "auth0|admin", w.reviewer.actor.subject, by=ctx)
    join(w, "auth0|admin", admin, by=ctx)
    assert enter(token).actor.subject == admin


def test_a_sign_in_is_one_persons(w, idp: Outside):
    join(w, "auth0|ann", w.reviewer.actor.subject)
    for person in (w.reviewer.actor.subject, w.reviewer2.actor.subject):
        with pytest.raises(IdentityTaken):
            join(w, "auth0|ann", person)
    with pytest.raises(IdentityTaken):  # nor does a member begin by it
        add(w, "auth0|ann")
    add(w, "auth0|bob")
    for subject in ("auth0|bob", w.operator.actor.subject):
        with pytest.raises(IdentityTaken):
            join(w, subject, w.reviewer.actor.subject)
    assert violations(w.tenant) == []


@pytest.mark.parametrize(
    ("issuer", "subject", "pointers"),
    [
        ("https://nobody.example", "auth0|ann", ["/issuer"]),
        ("urn:factory:embedded", "auth0|ann", ["/issuer"]),
        (IDP, "an n", ["/subject"]),
        (IDP, "service:x:y", ["/subject"]),
        ("", "", ["/issuer", "/subject"]),
    ],
)
def test_only_what_a_trusted_issuer_could_say_is_joined(w, idp: Outside, issuer, subject, pointers):
    with pytest.raises(InvalidInput) as no:
        join(w, subject, w.reviewer.actor.subject, issuer=issuer)
    assert [fault.pointer for fault in no.value.errors] == pointers


def test_only_a_person_who_is_a_member_is_joined(w, idp: Outside):
    for person in ("nobody@nowhere.test", w.service.actor.subject):
        with pytest.raises(PersonNotMember):
            join(w, "auth0|ann", person)


def test_who_may_decide_about_all_that_a_person_is_joins_their_sign_in(w, idp: Outside):
    with pytest.raises(RoleOutOfReach):
        join(w, "auth0|ann", w.reviewer.actor.subject, by=w.workspace_admin)
    with pytest.raises(RoleOutOfReach):
        join(w, "auth0|root", subject_of(w.tenant, "platform_admin"))
    key = join(w, "auth0|root", subject_of(w.tenant, "platform_admin"), by=whole(w, "platform_admin"))
    with pytest.raises(RoleOutOfReach):
        end_identity(whole(w), identity_id=key, reason="no")


def test_a_sign_in_ends_with_the_last_membership(w, idp: Outside):
    key = add(w, "bob@acme.test")
    joined = join(w, "auth0|bob", "bob@acme.test")
    wide = add(w, "bob@acme.test", ("Observer",), project=None)
    remove_member(w.workspace_admin, membership_id=key)
    assert enter(idp.token(w, "auth0|bob")).actor.roles == {"Observer"}
    remove_member(whole(w), membership_id=wide)
    assert refusal(idp.token(w, "auth0|bob")) == NO_GRANTS
    assert journal(w.system(), joined)[-1] == ("Active", "Ended", "MemberRemoved")
    add(w, "bob@acme.test")
    assert refusal(idp.token(w, "auth0|bob")) == NO_GRANTS
    assert violations(w.tenant) == []


def test_a_sign_in_is_joined_in_one_tenant(w, idp: Outside, tenant_id):
    other = second_world(tenant_id)
    join(w, "auth0|ann", w.reviewer.actor.subject)
    assert refusal(idp.token(other, "auth0|ann")) == NO_GRANTS


def test_the_members_credential_is_that_of_each_sign_in(w, idp: Outside):
    join(w, "auth0|ann", w.reviewer.actor.subject)
    token = idp.token(w, "auth0|ann")
    enter(token)
    revoke_credential(whole(w), subject=w.reviewer.actor.subject, reason="lost")
    with pytest.raises(TokenRefused):
        enter(token)


def test_sign_ins_are_joined_and_ended_over_the_api_and_at_the_terminal(w, idp: Outside):
    api = Api.as_(whole(w), project_id=None)
    body = {"issuer": IDP, "subject": "auth0|ann", "person": w.reviewer.actor.subject, "reason": "seen"}
    once = str(uuid4())
    made = api.post("/factory/identities", body, Idempotency_Key=once)
    assert made.status_code == 201, made.content
    assert api.post("/factory/identities", body, Idempotency_Key=once).json() == made.json()
    assert [row["subject"] for row in api.get("/factory/identities").json()["items"]] == ["auth0|ann"]
    taken = api.post("/factory/identities", body, Idempotency_Key=str(uuid4()))
    assert problem(taken)["type"].rpartition("/")[2] == "identity-taken"
    ended = api.post(f"/factory/identities/{made.json()['identityId']}/end", {"reason": "gone"})
    assert (ended.status_code, ended.json()["state"]) == (200, "Ended")
    assert Api.as_(w.reviewer).get("/factory/identities").status_code == 403

    told = StringIO()
    words = {"tenant": w.tenant, "issuer": IDP, "subject": "auth0|ann", "reason": "seen", "stdout": told}
    call_command("identity", "join", member=w.reviewer.actor.subject, **words)
    call_command("identity", "list", tenant=w.tenant, stdout=told)
    call_command("identity", "end", **words)
    assert f"{w.reviewer.actor.subject}  auth0|ann  of {IDP}" in told.getvalue()
    with pytest.raises(CommandError):
        call_command("identity", "end", **words)
