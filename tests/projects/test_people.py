"""One person, however they come in: by an address that was verified, or by an administrator's act."""

from dataclasses import replace
from io import StringIO
from uuid import UUID, uuid4

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command

from approvals.errors import AlreadyVoted, SeparationOfDuties
from approvals.selectors import mine
from factory.identity.config import identity_settings
from factory.identity.principals import NO_STANDING, TWO_MEMBERS, context_of
from factory.identity.tokens import TokenRefused, verifier
from factory.kernel.addresses import NoAddress, normal_address, normal_subject
from factory.kernel.clock import now
from factory.kernel.commanding import command
from factory.kernel.context import Context
from factory.kernel.errors import Forbidden, InvalidInput
from factory.kernel.models import User
from factory.kernel.permissions import permit
from factory.kernel.recording import record
from factory.kernel.tenancy import reading
from projects.commands import (
    add_member,
    end_identity,
    join_identity,
    onboard_project,
    register_service_account,
    remove_member,
    revoke_credential,
)
from projects.commands.inputs import NewMember
from projects.errors import (
    AddressTaken,
    IdentityEnded,
    IdentityTaken,
    MemberExists,
    PersonNotMember,
    RoleOutOfReach,
)
from projects.models import Membership
from tests.approvals.test_decisions import decide
from tests.kernel.damage import admin_url
from tests.support.api import Api, problem
from tests.support.approvals import asking, staged
from tests.support.corruption import found_by, walls_down
from tests.support.delegations import lend
from tests.support.evidence import audits, journal, violations
from tests.support.issuers import Outside, outside
from tests.support.world import World, second_world, subject_of, world
from tests.support.world import context_of as standing_of

IDP, OTHER = "https://idp.example", "https://other.example"


@pytest.fixture
def w(tenant_id) -> World:
    return world(tenant_id)


@pytest.fixture
def idp(tmp_path):
    with outside(tmp_path, IDP) as (one,):
        yield one


@pytest.fixture
def two(tmp_path):
    with outside(tmp_path, IDP, OTHER) as both:
        yield both


def add(w, subject, roles=("Reviewer",), *, project=..., by=None, **other) -> UUID:
    project_id = w.project if project is ... else project
    member = NewMember(subject, roles, **other)
    return UUID(add_member(by or w.system(), project_id=project_id, member=member))


def join(w, subject, person, *, issuer=IDP, by=None) -> UUID:
    made = join_identity(
        by or whole(w), issuer=issuer, subject=subject, person=person, reason="Seen in person"
    )
    return UUID(made)


def whole(w, who="tenant_admin") -> Context:
    return standing_of(subject_of(w.tenant, who), w.tenant, None)


def enter(token: str) -> Context:
    return context_of(verifier().verify(token), channel="api", correlation_id=uuid4())


def refusal(token: str) -> str:
    with pytest.raises(Forbidden) as no:
        enter(token)
    return no.value.detail


# --- spelling ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("bob@acme.test ", "bob@acme.test"),
        (" Bob@ACME.Test", "bob@acme.test"),
        ("ｂｏｂ@acme.test", "bob@acme.test"),
        ("bob@bücher.example", "bob@xn--bcher-kva.example"),
        ("bob@acme.teѕt", "bob@acme.xn--tet-ghd"),
        ("bob+x_y@a-b.acme.test", "bob+x_y@a-b.acme.test"),
    ],
)
def test_an_address_has_one_spelling(written, kept):
    assert normal_address(written) == normal_subject(written) == kept


@pytest.mark.parametrize(
    "written",
    ["bοb@acme.test", "b\u200bob@acme.test", "bob@acme.test\n", "bob@", "@acme.test", "b ob@acme.test",
     "bob@acme..test", "bob@-acme.test", "a" * 65 + "@acme.test", "bob@ex\u202eample.test", "bob@a\0.test"],
)  # fmt: skip
def test_what_looks_like_another_address_is_none(written):
    with pytest.raises(NoAddress):
        normal_address(written)
    with pytest.raises(NoAddress):
        normal_subject(written)


@pytest.mark.parametrize("written", ["аnn", "an n", "ann\t", "", " ", "x" * 256])
def test_what_an_issuer_calls_somebody_is_plain(written):
    with pytest.raises(NoAddress):
        normal_subject(written)


def test_a_member_is_kept_in_the_one_spelling(w):
    key = add(w, " Ann@Example.ORG ", email="Ann.B@Example.org ")
    with reading(w.system()):
        row = Membership.objects.get(pk=key)
    assert (row.subject, row.person, row.email) == ("ann@example.org", "ann@example.org", "ann.b@example.org")
    with pytest.raises(MemberExists):
        add(w, "ANN@example.org")
    add(w, "ANN@example.org", project=None)  # the same person, in the whole tenant too
    assert violations(w.tenant) == []


@pytest.mark.parametrize(
    ("subject", "email", "pointer"),
    [
        ("bοb@acme.test", "", "/subject"),
        ("bob@acme.test", "bοb@acme.test", "/email"),
        ("bo b", "", "/subject"),
    ],
)
def test_a_look_alike_becomes_no_member_on_any_path(w, subject, email, pointer):
    with pytest.raises(InvalidInput) as no:
        add(w, subject, email=email)
    assert [fault.pointer for fault in no.value.errors] == [pointer]
    answer = Api.as_(w.workspace_admin).post(
        f"/factory/projects/{w.project}/members",
        {"subject": subject, "email": email, "roles": ["Observer"]},
        Idempotency_Key=str(uuid4()),
    )
    assert answer.status_code == 400, answer.content
    with pytest.raises(InvalidInput) as no:
        onboard_project(
            w.system(),
            slug="other",
            name="Other",
            environments=[],
            members=[NewMember(subject, ("Observer",), email=email)],
        )
    assert [fault.pointer for fault in no.value.errors] == [f"/members/0{pointer}"]


def test_the_command_line_keeps_the_same_spelling(w):
    told = StringIO()
    call_command(
        "onboard",
        f"--tenant={w.tenant}",
        "--project=second",
        f"--member= Ann@{w.tenant}.TEST =Requester",
        "--create-users",
        stdout=told,
    )
    user = User.objects.get(email=f"ann@{w.tenant}.test")
    assert user.subject == user.email
    assert User.objects.get_by_natural_key(f" ANN@{w.tenant}.test") == user
    with pytest.raises(CommandError):
        call_command("onboard", f"--tenant={w.tenant}", "--project=third", "--member=bοb@acme.test=Requester")


def test_owners_and_delegates_are_found_however_they_are_spelled(w):
    reviewer = w.reviewer.actor.subject
    register_service_account(
        w.workspace_admin, project_id=w.project, slug="ci", owner=f" {reviewer.upper()}", roles=("Requester",)
    )
    other = replace(w.reviewer2, actor=replace(w.reviewer2.actor, subject=w.reviewer2.actor.subject.upper()))
    lend(w.reviewer, other)
    assert violations(w.tenant) == []


# --- one address, one member ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subject", "email"),
    [("auth0|bob", "bob@acme.test"), ("auth0|bob", "BOB@acme.test "), ("b@x.test", "bob@acme.test")],
)
def test_a_second_member_with_an_address_in_use_is_refused(w, subject, email):
    add(w, "bob@acme.test")
    for project in (w.project, None):
        with pytest.raises(AddressTaken) as no:
            add(w, subject, email=email, project=project)
        assert (no.value.code, no.value.http_status) == ("address-taken", 409)
        assert [fault.pointer for fault in no.value.errors] == ["/email"]
        assert "bob@acme.test" in no.value.detail


def test_the_address_of_somebody_else_is_no_name_of_a_second_member(w):
    add(w, "auth0|bob", email="bob@acme.test")
    with pytest.raises(AddressTaken) as no:
        add(w, "bob@acme.test", project=None)
    assert [fault.pointer for fault in no.value.errors] == ["/subject"]


def test_who_administers_one_project_learns_no_names_of_another(w):
    made = onboard_project(whole(w), slug="other", name="Other", environments=[], members=[])
    add(w, "bob@acme.test", project=UUID(made["projectId"]), by=whole(w))
    with pytest.raises(AddressTaken) as no:
        add(w, "auth0|bob", email="bob@acme.test", by=w.workspace_admin)
    assert no.value.detail.startswith("Somebody in another project")


def test_two_of_one_onboarding_are_two_people(w):
    for members in (
        [NewMember("bob@acme.test", ("Observer",)), NewMember("Bob@ACME.test", ("Observer",))],
        [NewMember("bob@acme.test", ("Observer",)), NewMember("b1", ("Observer",), email="bob@acme.test")],
    ):
        with pytest.raises((InvalidInput, AddressTaken)) as no:
            onboard_project(w.system(), slug="other", name="Other", environments=[], members=members)
        assert no.value.errors[0].pointer.startswith("/members/1/")


def test_an_address_is_free_again_when_its_member_has_left(w):
    key = add(w, "bob@acme.test")
    remove_member(w.workspace_admin, membership_id=key)
    add(w, "auth0|bob", email="bob@acme.test")
    assert violations(w.tenant) == []


def test_the_same_address_in_another_tenant_is_another_member(w, tenant_id):
    other = second_world(tenant_id)
    add(w, "bob@acme.test")
    add(other, "auth0|bob", email="bob@acme.test")
    assert violations(w.tenant) == violations(other.tenant) == []


# --- who comes by a token ------------------------------------------------------------------------


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
    assert refusal(idp.token(w, "opaque-7", email=address, **claims)) == NO_STANDING
    assert refusal(idp.token(w, address, email=address, **claims)) == NO_STANDING


def test_the_names_of_the_claims_are_settings(w, idp: Outside, settings):
    claims = {**settings.IDENTITY["claims"], "email": "mail", "email_verified": "mail_ok"}
    settings.IDENTITY = {**settings.IDENTITY, "claims": claims}
    verifier.cache_clear()
    token = idp.token(w, "opaque-7", mail=w.reviewer.actor.subject, mail_ok=True)
    assert enter(token).actor.subject == w.reviewer.actor.subject
    token = idp.token(w, "opaque-7", email=w.reviewer.actor.subject, email_verified=True)
    assert refusal(token) == NO_STANDING


def test_a_machine_is_nobody_by_an_address(w, idp: Outside):
    token = idp.token(
        w, "client-1", client_id="client-1", email=w.reviewer.actor.subject, email_verified=True
    )
    assert refusal(token) == NO_STANDING


def test_of_several_issuers_none_may_say_whose_any_address_is(w, two):
    """Else each of them could be everybody: a partner's issuer would be the boss."""
    for issuer in two:
        claims = {"email": w.reviewer.actor.subject, "email_verified": True}
        assert refusal(issuer.token(w, "opaque-7", **claims)) == NO_STANDING


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
        assert refusal(other.token(w, "opaque-7", **ann)) == NO_STANDING
        assert refusal(one.token(w, "opaque-7", **bob)) == NO_STANDING
        assert refusal(one.token(w, "opaque-7", email="bob@sub.partner.test", email_verified=True)) == (
            NO_STANDING
        )


def test_an_issuer_with_domains_is_not_believed_beyond_them_where_it_is_the_only_one(w, tmp_path):
    with outside(tmp_path, IDP, domains={IDP: ["elsewhere.test"]}) as (one,):
        claims = {"email": w.reviewer.actor.subject, "email_verified": True}
        assert refusal(one.token(w, "opaque-7", **claims)) == NO_STANDING


def test_only_our_own_issuer_speaks_for_our_service_accounts(w, tmp_path):
    bot = w.service.actor.subject
    with outside(tmp_path, IDP) as (one,):
        assert refusal(one.token(w, bot, client_id=bot)) == NO_STANDING
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
    assert refusal(idp.token(w, "auth0|eve")) == NO_STANDING


def test_the_same_subject_of_two_issuers_is_nobody_until_an_administrator_says_whose_it_is(w, two):
    first, second = two
    add(w, "u-1", ("Operator",))
    for issuer in two:
        assert refusal(issuer.token(w, "u-1")) == NO_STANDING
    join(w, "u-1", "u-1", issuer=IDP)
    assert enter(first.token(w, "u-1")).actor.subject == "u-1"
    assert refusal(second.token(w, "u-1")) == NO_STANDING


def test_a_token_that_is_two_members_opens_nothing(w, idp: Outside):
    add(w, "auth0|bob", ("Operator",))
    token = idp.token(w, "auth0|bob", email=w.reviewer.actor.subject, email_verified=True)
    assert refusal(token) == TWO_MEMBERS


# --- an administrator's act ----------------------------------------------------------------------


def test_a_joined_sign_in_is_the_member(w, idp: Outside):
    assert refusal(idp.token(w, "auth0|ann")) == NO_STANDING
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
    assert refusal(idp.token(w, "auth0|ann")) == NO_STANDING
    with pytest.raises(IdentityEnded):
        end_identity(whole(w), identity_id=key, reason="again")
    assert [cause for _, _, cause in journal(w.system(), key)] == ["IdentityJoined", "IdentityEnded"]
    join(w, "auth0|ann", w.reviewer2.actor.subject)
    assert enter(idp.token(w, "auth0|ann")).actor.subject == w.reviewer2.actor.subject
    assert violations(w.tenant) == []


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
    assert refusal(idp.token(w, "auth0|bob")) == NO_STANDING
    assert journal(w.system(), joined)[-1] == ("Active", "Ended", "MemberRemoved")
    add(w, "bob@acme.test")
    assert refusal(idp.token(w, "auth0|bob")) == NO_STANDING
    assert violations(w.tenant) == []


def test_a_sign_in_is_joined_in_one_tenant(w, idp: Outside, tenant_id):
    other = second_world(tenant_id)
    join(w, "auth0|ann", w.reviewer.actor.subject)
    assert refusal(idp.token(other, "auth0|ann")) == NO_STANDING


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


# --- people are compared -------------------------------------------------------------------------


@pytest.fixture
def stage():
    with staged() as it:
        yield it


def test_nobody_decides_on_what_they_asked_for_by_another_sign_in(tenant_id, idp: Outside, stage):
    """The one that submits comes by the issuer, the one that approves signs in to the console."""
    asker = asking(tenant_id)
    w = asker.world
    by_issuer = enter(idp.token(w, "opaque-7", email=w.reviewer.actor.subject, email_verified=True)).actor
    view = asker.ask(requested_by=by_issuer.subject, requester_person=by_issuer.person)
    with pytest.raises(SeparationOfDuties):
        decide(w.reviewer, view)
    with reading(asker.house):
        assert mine(w.reviewer).count() == 0


def test_what_somebody_asked_for_as_another_member_stays_theirs(tenant_id, idp: Outside, stage):
    """Two members were one person: one membership is ended, and its sign-in is joined to the other."""
    asker = asking(tenant_id)
    w = asker.world
    key = add(w, "auth0|bob", ("Requester",))
    view = asker.ask(requested_by="auth0|bob", requester_person="auth0|bob")
    remove_member(w.workspace_admin, membership_id=key)
    join(w, "auth0|bob", w.reviewer.actor.subject)
    with pytest.raises(SeparationOfDuties):
        decide(w.reviewer, view)
    with reading(asker.house):
        assert mine(w.reviewer).count() == 0
        assert mine(w.reviewer2).count() == 1
    decide(w.reviewer2, view)
    assert violations(w.tenant) == []


def as_before(w, subject, roles=("Reviewer",), email="") -> Membership:
    """A member as a database from before addresses were compared may hold one."""
    at = now()
    row = Membership(
        tenant_id=w.tenant,
        project_id=w.project,
        subject=subject,
        person=subject,
        kind="person",
        email=email,
        roles=list(roles),
        created_at=at,
        updated_at=at,
    )
    _enter_in_books(w.system(), row=row)
    return row


permit("TestEarlierMember", scope=None, roles=None, kinds=("system",))


@command("TestEarlierMember", audited=False)
def _enter_in_books(ctx: Context, *, row: Membership) -> None:
    record(ctx, row, "MemberAdded", detail={"roles": row.roles, "grants": row.grants})


SHARED = [("auth0|bob", "{reviewer}"), ("auth0|bob", " {REVIEWER} "), ("{REVIEWER} ", "")]


@pytest.mark.parametrize(("subject", "email"), SHARED)
@pytest.mark.parametrize("state", ["Active", "Removed"])
def test_who_shares_an_address_with_who_asked_does_not_decide(tenant_id, stage, email, subject, state):
    asker = asking(tenant_id)
    w = asker.world
    words = {"reviewer": w.reviewer.actor.subject, "REVIEWER": w.reviewer.actor.subject.upper()}
    told = subject.format(**words)
    other = as_before(w, told, ("Requester",), email.format(**words))
    if state == "Removed":
        remove_member(w.workspace_admin, membership_id=other.id)
    view = asker.ask(requested_by=told, requester_person=told)
    with pytest.raises(SeparationOfDuties):
        decide(w.reviewer, view)
    with reading(asker.house):
        assert mine(w.reviewer).count() == 0
        assert mine(w.reviewer2).count() == 1
    decide(w.reviewer2, view)
    assert {v.code for v in violations(w.tenant)} <= {"P7", "P9"}


def test_a_machine_of_who_shares_an_address_asks_for_them(tenant_id, stage):
    asker = asking(tenant_id)
    w = asker.world
    as_before(w, "auth0|bob", ("Requester",), w.reviewer.actor.subject)
    machine = register_service_account(
        w.system(), project_id=w.project, slug="bobs", owner="auth0|bob", roles=("Requester",)
    )
    view = asker.ask(requested_by=machine, requester_person="auth0|bob")
    with pytest.raises(SeparationOfDuties):
        decide(w.reviewer, view)


def test_what_an_address_asked_for_is_not_decided_by_a_sign_in_that_has_verified_it(
    tenant_id, idp: Outside, stage
):
    """The member leaves, and comes back by the issuer's name for them: no membership tells the two."""
    asker = asking(tenant_id)
    w = asker.world
    key = add(w, "bob@acme.test", ("Requester",))
    view = asker.ask(requested_by="bob@acme.test", requester_person="bob@acme.test")
    remove_member(w.workspace_admin, membership_id=key)
    add(w, "auth0|bob")
    ctx = enter(idp.token(w, "auth0|bob", email="Bob@acme.test", email_verified=True))
    assert ctx.actor.subject == "auth0|bob"
    with reading(asker.house):
        assert mine(ctx).count() == 0
    with pytest.raises(SeparationOfDuties):
        decide(ctx, view)


@pytest.mark.parametrize("before", ["Bob@Acme.test", "bob@acme.test ", "bob@b\u00fccher.example"])
def test_an_old_spelling_of_an_address_is_found_before_a_second_member_joins(w, before):
    address = normal_address(before)
    old = as_before(w, "auth0|bob", email=before)
    with pytest.raises(AddressTaken):
        add(w, address)
    remove_member(w.workspace_admin, membership_id=old.id)
    old = as_before(w, before)
    with pytest.raises(MemberExists):
        add(w, address)
    with pytest.raises(AddressTaken):
        add(w, "auth0|bob", email=address)
    remove_member(w.workspace_admin, membership_id=old.id)
    add(w, address)
    assert violations(w.tenant) == []


# --- the auditor ---------------------------------------------------------------------------------


def test_the_auditor_finds_an_address_of_two_people(w):
    key = add(w, "auth0|bob", email="bob@acme.test")
    with walls_down("projects_membership") as cursor:
        assert found_by("P7", cursor, w.tenant) == []
        cursor.execute(
            "UPDATE projects_membership SET email = %s WHERE id = %s",
            [w.reviewer.actor.subject.upper(), key],
        )
        (found,) = found_by("P7", cursor, w.tenant)
    assert found == (f"address:{w.reviewer.actor.subject}", f"of auth0|bob, {w.reviewer.actor.subject}")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (
            "INSERT INTO projects_identity SELECT (jsonb_populate_record(i, jsonb_build_object('id', "
            "gen_random_uuid(), 'person', %(other)s))).* FROM projects_identity i WHERE i.id = %(id)s",
            "that of 1 others too",
        ),
        ("UPDATE projects_identity SET person = 'nobody' WHERE id = %(id)s", "nobody is no member"),
        ("UPDATE projects_identity SET subject = %(other)s WHERE id = %(id)s", "is a member by it"),
    ],
)
def test_the_auditor_finds_a_sign_in_that_is_not_one_members(w, idp: Outside, damage, words):
    key = join(w, "auth0|ann", w.reviewer.actor.subject)
    with walls_down("projects_identity", "projects_membership") as cursor:
        assert found_by("P8", cursor, w.tenant) == []
        cursor.execute(damage, {"id": key, "other": w.reviewer2.actor.subject})
        assert any(words in detail for _, detail in found_by("P8", cursor, w.tenant))


def test_the_auditor_finds_who_decided_on_what_they_asked_for_as_another(tenant_id, idp: Outside, stage):
    asker = asking(tenant_id)
    w = asker.world
    view = decide(w.reviewer, asker.ask(requested_by="auth0|bob", requester_person="auth0|bob"))
    assert violations(w.tenant) == []
    join(w, "auth0|bob", w.reviewer.actor.subject)
    assert [(v.code, v.subject) for v in violations(w.tenant)] == [("D1", f"approval:{view.id}")]


@pytest.mark.parametrize(
    ("subject", "email"),
    [
        ("Bob@Acme.test", ""),
        ("bob@acme.test ", ""),
        ("auth0|bob", "Bob@acme.test"),
        ("b@b\u00fccher.test", ""),
    ],
)
def test_the_auditor_finds_who_is_not_normally_spelled(w, subject, email):
    assert violations(w.tenant) == []
    row = as_before(w, subject, email=email)
    (found,) = violations(w.tenant)
    assert (found.code, found.subject) == ("P9", f"membership:{row.id}")


def test_the_auditor_finds_one_address_in_two_spellings(w):
    as_before(w, "bob@acme.test ")
    as_before(w, "auth0|bob", email="BOB@acme.test")
    found = [v for v in violations(w.tenant) if v.code == "P7"]
    assert [v.subject for v in found] == ["address:bob@acme.test"]


@pytest.mark.parametrize("ended", [False, True])
def test_the_auditor_finds_who_decided_for_who_shares_their_address(tenant_id, stage, ended):
    asker = asking(tenant_id)
    w = asker.world
    view = decide(w.reviewer, asker.ask(requested_by="auth0|bob", requester_person="auth0|bob"))
    row = as_before(w, "auth0|bob", ("Requester",), w.reviewer.actor.subject.upper())
    if ended:
        remove_member(w.workspace_admin, membership_id=row.id)
    found = [(v.code, v.subject) for v in violations(w.tenant)]
    assert ("D1", f"approval:{view.id}") in found


def test_the_auditor_remembers_a_sign_in_that_has_ended(tenant_id, idp: Outside, stage):
    asker = asking(tenant_id)
    w = asker.world
    view = decide(w.reviewer, asker.ask(requested_by="auth0|bob", requester_person="auth0|bob"))
    end_identity(whole(w), identity_id=join(w, "auth0|bob", w.reviewer.actor.subject), reason="left")
    assert [(v.code, v.subject) for v in violations(w.tenant)] == [("D1", f"approval:{view.id}")]


def test_the_auditor_finds_a_vote_of_who_shares_an_address_with_who_asked(tenant_id, stage):
    asker = asking(tenant_id)
    w = asker.world
    ask = asker.ask(policy=asker.ruled(quorum=2), requested_by="auth0|bob", requester_person="auth0|bob")
    decide(w.reviewer, ask)
    as_before(w, "auth0|bob", ("Requester",), w.reviewer.actor.subject)
    assert ("D6", f"approval:{ask.id}") in [(v.code, v.subject) for v in violations(w.tenant)]


def test_two_members_of_one_address_are_one_vote_of_a_quorum(tenant_id, stage):
    """A database from before may hold them: the second yes is refused, and one that was cast counts once."""
    asker = asking(tenant_id)
    w = asker.world
    ask = asker.ask(policy=asker.ruled(quorum=2))
    as_before(w, "auth0|twin", ("Reviewer",), w.reviewer.actor.subject.upper())
    decide(w.reviewer, ask)
    twin = standing_of("auth0|twin", w.tenant, w.project)
    with reading(twin):
        assert ask.id not in {row.id for row in mine(twin)}
    with pytest.raises(AlreadyVoted):
        decide(twin, ask)
    assert decide(w.reviewer2, ask).state == "Approved"


def test_votes_of_members_who_come_to_share_an_address_are_found_and_count_once(tenant_id, stage):
    asker = asking(tenant_id)
    w = asker.world
    row = as_before(w, "auth0|twin", ("Reviewer",))
    twin = standing_of("auth0|twin", w.tenant, w.project)
    open_, closed = (asker.again().ask(policy=asker.ruled(quorum=quorum)) for quorum in (3, 2))
    for ask in (open_, closed):
        decide(w.reviewer, ask)
        decide(twin, ask)
    with psycopg.connect(admin_url()) as db:
        db.execute("ALTER TABLE projects_membership DISABLE TRIGGER pinned_columns")
        db.execute(
            "UPDATE projects_membership SET email = %s WHERE id = %s", [w.reviewer.actor.subject, row.id]
        )
        db.execute("ALTER TABLE projects_membership ENABLE ALWAYS TRIGGER pinned_columns")
    assert decide(w.reviewer2, open_).state == "Pending"
    assert [v.subject for v in violations(w.tenant) if v.code == "D6"] == [f"approval:{closed.id}"]
