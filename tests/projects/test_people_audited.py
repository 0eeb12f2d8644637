"""What the auditor finds of people who are two, or decided on their own requests."""

import psycopg
import pytest

from projects.commands import end_identity, remove_member
from tests.approvals.test_decisions import decide
from tests.kernel.damage import admin_url
from tests.projects.people import add, as_before, join, whole
from tests.support.approvals import asking
from tests.support.corruption import found_by, walls_down
from tests.support.evidence import violations
from tests.support.issuers import Outside
from tests.support.world import context_of as standing_of


def test_the_auditor_finds_an_address_of_two_people(w):
    key = add(w, "auth0|bob", email="bob@acme.test")
    with walls_down("projects_membership") as cursor:
        assert found_by("P7", cursor, w.tenant) == []
        cursor.execute(
            "UPDATE projects_membership SET email = %s WHERE id = %s", [w.reviewer.actor.subject.upper(), key]
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
