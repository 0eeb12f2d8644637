"""One spelling of an address, and one member with it in a tenant."""

from dataclasses import replace
from io import StringIO
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command

from factory.kernel.addresses import NoAddress, normal_address, normal_subject
from factory.kernel.errors import InvalidInput
from factory.kernel.models import User
from factory.kernel.tenancy import reading
from projects.commands import onboard_project, register_service_account, remove_member
from projects.commands.inputs import NewMember
from projects.errors import AddressTaken, MemberExists
from projects.models import Membership
from tests.projects.people import add, whole
from tests.support.api import Api
from tests.support.delegations import lend
from tests.support.evidence import violations
from tests.support.world import second_world


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
