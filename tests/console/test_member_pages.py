"""Onboarding a project and deciding who is what in it, in the console: by forms, each with one command."""

import re
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from django.urls import reverse

from factory.kernel.context import Context, system
from factory.kernel.tenancy import reading
from projects.commands import (
    add_member,
    change_member,
    onboard_project,
    register_service_account,
    remove_member,
)
from projects.commands.inputs import NewMember
from projects.models import Delegation, Environment, Membership, Project, ServiceAccount
from tests.console.test_pages import signed_in
from tests.support import evidence
from tests.support.client import Client
from tests.support.delegations import lend
from tests.support.proposals import HOSTILE
from tests.support.queries import within_budget
from tests.support.world import World, context_of, subject_of, world

pytestmark = pytest.mark.slow
ODD = HOSTILE[0][:90]


@pytest.fixture
def w(tenant_id: str) -> World:
    return world(tenant_id)


def at(member: Context, project: UUID | None) -> Client:
    """Somebody at the console, in a project or in the whole tenant."""
    client = signed_in(member)
    client.post("/admin/place/", {"place": f"{member.tenant_id}/{project or ''}"})
    return client


def words(answer: Any) -> str:
    """What is read of a page."""
    main = answer.content.decode().partition("<body")[2]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", main)).split())


def membership(w: World, subject: str, project: UUID | None = None) -> Membership:
    with reading(w.system()):
        return Membership.objects.get(subject=subject, project=project)


def url(name: str, *args: object) -> str:
    return reverse(f"admin:{name}", args=args)


WHOLE = {
    "name": ODD,
    "slug": "assessments",
    "environments/0/slug": "staging",
    "environments/2/slug": "production",
    "environments/2/name": "The real thing",
    "members/1/subject": "ann@example.org",
    "members/1/displayName": ODD,
    "members/1/roles": ["Requester", "Reviewer"],
    "members/1/grants": ["payloads"],
}


@pytest.mark.requirement("PRJ-01")
def test_a_project_is_onboarded_as_one_form_and_its_page_says_what_it_still_needs(w: World) -> None:
    client = at(w.tenant_admin, w.project)
    far = client.post(url("projects_onboard"), {**WHOLE, "members/50/subject": "bob@example.org"})
    assert (far.status_code, "More than 50 rows of a kind were sent" in words(far)) == (400, True)
    assert url("projects_onboard") in client.get(url("projects_project_changelist")).content.decode()
    form = words(client.get(url("projects_onboard")))
    assert "Reviewer Decide on requests" in form
    more = client.post(url("projects_onboard"), {**WHOLE, "more": "members"})
    assert (more.status_code, 'name="members/4/subject"' in more.content.decode()) == (200, True)
    wrong = client.post(
        url("projects_onboard"),
        {**WHOLE, "slug": "No Key", "environments/1/slug": "staging", "members/3/roles": ["PlatformAdmin"]},
    )
    told, html = words(wrong), wrong.content.decode()
    assert wrong.status_code == 400
    assert "Look below at Short name (slug) , Short name of environment 2 , Who is member 2 and Roles" in told
    assert "Short name (slug) Only lower-case letters" in told
    assert "staging is named already, as number 1." in told
    assert "PlatformAdmin is a role in the whole tenant" in told
    assert 'value="The real thing"' in html, "what was written is kept, and the rows have closed up"
    assert re.search(r'name="members/0/roles" value="Reviewer" checked', html)
    assert ODD not in html
    with reading(w.system()):
        assert not Project.objects.exclude(pk=w.project).exists()
    answer = client.post(url("projects_onboard"), WHOLE, follow=True)
    told = words(answer)
    assert "with 2 environments and 1 member of its own" in told
    assert "3 things are missing before a run can start: see below." in told
    assert "No budget covers this month" in told
    assert "The tenant has published no workflow" in told
    assert "is the only one here" not in told
    assert ODD in told
    assert ODD not in answer.content.decode()
    with reading(w.system()):
        made = Project.objects.get(slug="assessments")
        names = set(Environment.objects.filter(project=made).values_list("slug", "name"))
        [ann] = Membership.objects.filter(project=made)
    assert names == {("staging", "staging"), ("production", "The real thing")}
    assert (ann.email, ann.roles, ann.grants) == ("ann@example.org", ["Requester", "Reviewer"], ["payloads"])
    again = client.post(url("projects_onboard"), WHOLE)
    assert (again.status_code, "It is taken." in words(again)) == (409, True)
    remove_member(
        system(w.tenant, "test"),
        membership_id=membership(w, w.platform_admin.actor.subject).pk,
    )
    bare = client.post(url("projects_onboard"), {"name": "Bare", "slug": "bare"}, follow=True)
    told = words(bare)
    assert "Tenant Admin (WorkspaceAdmin, tenant-wide) is the only one here" in told
    assert "nobody decides on what they asked for themselves. Add a member" in told
    assert "There is no environment" in told
    assert evidence.violations(w.tenant) == []


def test_who_administers_only_a_project_onboards_none(w: World) -> None:
    client = signed_in(w.workspace_admin)
    assert url("projects_onboard") not in client.get(url("projects_project_changelist")).content.decode()
    for answer in (client.get(url("projects_onboard")), client.post(url("projects_onboard"), WHOLE)):
        assert answer.status_code == 403
        assert "An administrator of the whole tenant onboards projects." in words(answer)


def test_a_member_is_added_changed_and_removed_with_what_follows_said_before(w: World) -> None:
    admin, new = signed_in(w.workspace_admin), url("projects_add_member", w.project)
    assert new in admin.get(url("projects_project_change", w.project)).content.decode()
    assert new in admin.get(url("projects_membership_changelist")).content.decode()
    form = words(admin.get(new))
    assert "Reviewer Decide on requests" in form
    assert "PlatformAdmin" not in form, "what is out of reach is not offered"
    assert "Observer Look at what is here, and change nothing." in form
    assert "set this project's budgets" in form.lower()
    assert "ublish the tenant's policy, where they are that in each project" in form
    assert "ublish prices" not in form, "they are of the whole tenant"
    wide = words(at(w.tenant_admin, None).get(url("projects_add_wide_member")))
    assert "ublish prices" in wide
    assert "where they are that in each project" not in wide
    person = {"subject": subject_of(w.tenant, "ann"), "displayName": ODD, "roles": ["Reviewer"]}
    empty = admin.post(new, {**person, "roles": []})
    assert (empty.status_code, "A member has at least one role." in words(empty)) == (400, True)
    added = admin.post(new, person, follow=True)
    assert f"{ODD} is a member now: Reviewer." in words(added)
    assert ODD not in added.content.decode()
    row = membership(w, person["subject"], w.project)
    long = admin.post(new, {**person, "subject": f"{'x' * 250}@example.org", "roles": ["Reviewer"]})
    assert (long.status_code, words(long).count("too long")) == (400, 1), "no fault at a field left empty"
    page = url("projects_membership_change", row.pk)
    twice = admin.post(new, person)
    assert twice.status_code == 409
    assert page in twice.content.decode(), "it leads to the membership that there is"
    told = words(admin.get(page))
    assert "Decide on requests" in told
    assert "Became a member: Reviewer" in told
    change = url("projects_change_member", row.pk)
    shown = admin.get(change).content.decode()
    assert re.search(r'value="Reviewer" checked', shown)
    change_member(w.tenant_admin, membership_id=row.pk, version=1, roles=["Operator"], grants=[])
    late = admin.post(change, {"version": "1", "roles": ["Requester"], "grants": ["audit"]})
    told = words(late)
    assert late.status_code == 409
    assert f"It was changed by {w.tenant_admin.actor.subject}" in told
    assert "now it is Operator, without grants." in told
    assert re.search(r'value="audit" checked', late.content.decode()), "what was chosen is kept"
    done = admin.post(change, {"version": "2", "roles": ["Requester"], "grants": ["audit"]}, follow=True)
    assert "has these roles from now on: Requester." in words(done)
    assert "Requester, grant audit; before: Operator" in words(done)
    remove = url("projects_remove_member", row.pk)
    assert "opens nothing in this project any more" in words(admin.get(remove))
    gone = admin.post(remove, {"reason": "Left us"}, follow=True)
    assert "is no member of The main project any more." in words(gone)
    assert "Whoever comes back is added again." in words(gone)
    history = words(admin.get(url("projects_membership_change", row.pk)))
    assert re.search(r"Was removed .* by \S+ Left us", history), "with the reason"
    for act in (change, remove):
        assert change not in gone.content.decode()
        assert admin.get(act).status_code == 200
        over = admin.post(act, {"version": "3", "roles": ["Observer"], "reason": "again"})
        assert over.status_code == 409
        assert "is no member any more, since" in words(over)
    [audited] = evidence.audits(w.observer, "RemoveMember")
    assert audited.reason == "Left us"
    assert evidence.violations(w.tenant) == []


def test_what_ends_with_somebody_is_said_before(w: World) -> None:
    lend(w.requester, w.reviewer, "Requester")
    admin = signed_in(w.workspace_admin)
    told = words(admin.get(url("projects_remove_member", w.memberships["requester"])))
    machine = (
        "The service account robot, their machine, leaves The main project; it is revoked for good if they"
    )
    assert f"{machine} are a member nowhere else." in told, "whether they are is not told in a project"
    whole = url("projects_remove_member", w.memberships["requester"])
    wide = at(w.tenant_admin, None)
    gone = "The service account robot is revoked for good: nobody else answers for it."
    assert gone in words(wide.get(whole))
    elsewhere = onboard_project(
        w.system(),
        slug="second",
        name="Second",
        environments=[],
        members=[NewMember(w.requester.actor.subject, ("Observer",))],
    )
    assert words(admin.get(whole)) == told, "nor does the page change with it"
    assert "robot, their machine, leaves The main project." in words(wide.get(whole))
    assert gone not in words(wide.get(whole))
    assert "Observer in Second" not in words(
        admin.get(url("projects_membership_change", w.memberships["requester"]))
    )
    remove_member(
        system(w.tenant, "test"), membership_id=UUID(elsewhere["members"][w.requester.actor.subject])
    )
    assert f"The role Requester that {w.requester.actor.subject} lent to" in told
    assert "Then nobody here can: ask for runs." not in told, "the account asks for runs until it ends"
    page = words(admin.get(url("projects_membership_change", w.memberships["requester"])))
    assert "Requester lent to" in page
    assert "Service accounts that they answer for robot" in page
    remove_member(w.tenant_admin, membership_id=w.memberships["operator"])
    told = words(admin.get(url("projects_change_member", w.memberships["requester"])))
    assert "Requester, lent to" in told


def test_the_last_administrator_stays_until_there_is_another(w: World) -> None:
    client, scope = at(w.platform_admin, None), system(w.tenant, "test")
    first = membership(w, w.tenant_admin.actor.subject)
    assert client.post(url("projects_remove_member", first.pk), {"reason": "x"}).status_code == 302
    own = membership(w, w.platform_admin.actor.subject)
    remove, change = url("projects_remove_member", own.pk), url("projects_change_member", own.pk)
    assert "is the only PlatformAdmin of the tenant" in words(client.get(remove))
    for answer in (
        client.post(remove, {"reason": "x"}),
        client.post(change, {"version": str(own.version), "roles": ["Observer"]}),
    ):
        assert answer.status_code == 409
        assert "Make another first: nobody else can." in words(answer)
    new = url("projects_add_wide_member")
    assert new in client.get(url("projects_membership_changelist")).content.decode()
    assert "PlatformAdmin" in words(client.get(new))
    eve = {"subject": f"eve@{w.tenant}.test", "roles": ["PlatformAdmin"]}
    assert client.post(new, eve).status_code == 302
    assert client.post(remove, {"reason": "x"}).status_code == 302
    zoe = NewMember(f"zoe@{w.tenant}.test", ("WorkspaceAdmin",))
    key = add_member(scope, project_id=None, member=zoe)
    remove_member(scope, membership_id=membership(w, eve["subject"]).pk)
    last = at(context_of(zoe.subject, w.tenant, None), None)
    remove = url("projects_remove_member", key)
    assert "is the only person who administers the whole tenant" in words(last.get(remove))
    answer = last.post(remove, {"reason": "x"})
    assert answer.status_code == 409
    assert "Make somebody else a WorkspaceAdmin there first." in words(answer)
    assert evidence.violations(w.tenant) == []


def test_what_leaves_a_place_to_the_platform_alone_is_said_before_and_done(w: World) -> None:
    admin = at(w.platform_admin, None)

    def told(key: object, place: str) -> list[bool]:
        said = f"is the last WorkspaceAdmin of {place}: without that only a PlatformAdmin administers it."
        pages = (url(f"projects_{act}_member", key) for act in ("change", "remove"))
        return [said in words(admin.get(page)) for page in pages]

    wide = membership(w, w.tenant_admin.actor.subject)
    here = w.memberships["workspace_admin"]
    assert told(here, "this project") == [False, False], "One of the whole tenant reaches it"
    assert told(w.memberships["operator"], "this project") == [False, False]
    assert told(wide.pk, "the whole tenant") == [True, True]
    assert admin.post(url("projects_remove_member", wide.pk), {"reason": "gone"}).status_code == 302
    assert told(wide.pk, "the whole tenant") == [False, False], "It is over"
    assert told(here, "this project") == [True, True]
    assert admin.post(url("projects_remove_member", here), {"reason": "gone"}).status_code == 302


@pytest.mark.requirement("IDN-15")
def test_what_is_out_of_reach_is_not_offered(w: World) -> None:
    platform = membership(w, w.platform_admin.actor.subject)
    wide, project = at(w.tenant_admin, None), signed_in(w.workspace_admin)
    for client, told in (
        (wide, "Only a PlatformAdmin decides who is one."),
        (project, "is changed there: by an administrator of the whole tenant"),
        (signed_in(w.observer), "An administrator of the project changes and removes its members."),
    ):
        page = client.get(url("projects_membership_change", platform.pk))
        assert told in words(page)
        for act in ("projects_change_member", "projects_remove_member"):
            assert url(act, platform.pk) not in page.content.decode()
            assert client.get(url(act, platform.pk)).status_code == 403
            assert client.post(url(act, platform.pk), {"roles": ["Observer"]}).status_code == 403
    lend(w.workspace_admin, w.reviewer, "WorkspaceAdmin")
    borrower, new = signed_in(w.reviewer), url("projects_add_member", w.project)
    assert new not in borrower.get(url("projects_project_change", w.project)).content.decode()
    refused = borrower.post(new, {"subject": "eve@example.org", "roles": ["Observer"]})
    assert (refused.status_code, "by a role of their own" in words(refused)) == (403, True)
    offered = borrower.get(url("projects_project_change", w.project)).content.decode()
    environment, machine = (
        url(f"projects_{it}", w.project) for it in ("add_environment", "register_account")
    )
    assert (environment in offered, machine in offered) == (True, False), "each by the rule of its form"
    observer = signed_in(w.observer)
    for form, told in (
        (environment, "An administrator of the project adds environments."),
        (machine, "by a role of their own"),
    ):
        answer = observer.get(form)
        assert (answer.status_code, told in words(answer)) == (403, True)
    with reading(w.system()):
        assert Delegation.objects.count() == 1


@pytest.mark.requirement("PRJ-04")
def test_environments_and_machines_are_added_from_the_page_of_the_project(w: World) -> None:
    admin, page = signed_in(w.workspace_admin), url("projects_project_change", w.project)
    environment, account = (
        url(f"projects_{word}", w.project) for word in ("add_environment", "register_account")
    )
    assert environment in admin.get(url("projects_environment_changelist")).content.decode()
    assert account in admin.get(url("projects_serviceaccount_changelist")).content.decode()
    taken = admin.post(environment, {"slug": "staging", "name": "x"})
    assert (taken.status_code, "It is taken." in words(taken)) == (409, True)
    long = admin.post(environment, {"slug": "lab", "name": "x" * 201})
    assert (long.status_code, "at most 200 fit." in words(long)) == (400, True)
    assert admin.post(environment, {"slug": "lab", "name": ODD}).headers["Location"] == page
    machine = {"slug": "ci", "owner": "nobody@example.org", "roles": ["Requester"]}
    nobody = admin.post(account, machine)
    assert (nobody.status_code, "Name an active member who is a person." in words(nobody)) == (422, True)
    assert admin.post(account, {**machine, "owner": w.requester.actor.subject}).status_code == 302
    told = admin.get(page)
    assert ODD in words(told)
    assert ODD not in told.content.decode()
    assert f"service:{w.tenant}:ci" in words(told)
    with reading(w.system()):
        assert ServiceAccount.objects.get(slug="ci").owner == w.requester.actor.subject


def test_the_pages_of_members_ask_a_known_number_of_questions(w: World) -> None:
    admin = signed_in(w.workspace_admin)
    lend(w.requester, w.reviewer, "Requester")
    for number in range(24):
        register_service_account(
            w.system(),
            project_id=w.project,
            slug=f"machine-{number}",
            owner=w.requester.actor.subject,
            roles=("Observer",),
        )
    second = NewMember(w.requester.actor.subject, ("Observer",))
    for number in range(21):
        onboard_project(
            w.system(), slug=f"other-{number}", name=f"Other {number}", environments=[], members=[second]
        )
    told = words(admin.get(url("projects_remove_member", w.memberships["requester"])))
    assert told.count("their machine, leaves The main project") == 20
    assert "The same holds for 5 more service accounts of theirs" in told
    assert "And 5 more." in words(admin.get(url("projects_membership_change", w.memberships["requester"])))
    for act in ("projects_membership_change", "projects_remove_member", "projects_add_member"):
        key = w.project if act == "projects_add_member" else w.memberships["requester"]
        admin.get(url(act, key))
        with within_budget("console member"):
            assert admin.get(url(act, key)).status_code == 200
    add_member(system(w.tenant, "test"), project_id=None, member=second)
    page = url("projects_membership_change", w.memberships["requester"])
    told = words(admin.get(page))
    assert "is also Observer in the whole tenant ." in told, "however much of it is not shown here"
    assert "Observer in Other" not in told
    assert ", and 2 more." in words(at(w.tenant_admin, None).get(page))
