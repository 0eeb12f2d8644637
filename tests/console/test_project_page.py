"""The page of a project: how it stands, and who can do what in it, through what."""

import re
from datetime import timedelta
from html import unescape
from uuid import UUID, uuid4

import pytest
from django.urls import reverse

from factory.kernel import clock
from factory.kernel.context import Context, system
from factory.kernel.tenancy import reading
from projects.admin.detail import effective_grants
from projects.admin.tables import delegations
from projects.commands import (
    add_member,
    kill_project,
    onboard_project,
    remove_member,
    revoke_delegation,
    suspend_project,
)
from projects.commands.inputs import NewMember
from projects.models import Delegation
from runs.commands import cancel_run
from tests.console.test_pages import signed_in
from tests.support.delegations import lend
from tests.support.proposals import HOSTILE
from tests.support.queries import within_budget
from tests.support.running import House
from tests.support.world import second_world, subject_of

pytestmark = pytest.mark.slow
ODD = HOSTILE[0][:90]


@pytest.fixture(scope="module")
def house() -> House:
    """A run that is open, somebody with an odd name, and a role that is lent."""
    made = House(f"t-{uuid4().hex[:16]}")
    made.run("single")
    odd = NewMember(subject_of(made.tenant, "odd"), ("Reviewer",), (), display_name=ODD)
    add_member(system(made.tenant, "test"), project_id=made.world.project, member=odd)
    lend(made.world.reviewer, made.world.requester, reason=ODD)
    return made


def page_of(house: House, member: Context) -> str:
    return signed_in(member).get(url_of(house)).content.decode()


def url_of(house: House) -> str:
    return reverse("admin:projects_project_change", args=[house.world.project])


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html.partition('<div id="content"')[2])).split())


def row(told: str, begins: str, ends: str) -> str:
    return told.partition(begins)[2].partition(ends)[0]


def test_it_says_how_the_project_stands_and_who_can_do_what_through_what(house: House) -> None:
    html = page_of(house, house.world.workspace_admin)
    told = words(html)
    assert "It accepts runs" in told
    assert "Open runs 1 1 Running" in told or "Open runs 1 1 Accepted" in told
    assert "995.00 USD left of 1000.00 USD" in told
    decide = row(told, "Decide on requests", "Cancel runs of others")
    assert "Reviewer2 (Reviewer)" in decide
    assert "Requester (Reviewer, lent by Reviewer)" in decide
    assert "Tenant Admin (WorkspaceAdmin, tenant-wide)" in decide
    assert f"{ODD} (Reviewer)" in decide
    assert ODD not in html, "somebody else's words stand there as words alone"
    assert "Finance (grant finance)" in row(told, "Set this project's budgets", "Publish prices")
    prices = row(told, "Publish prices", "Publish the tenant's policy")
    assert "Tenant Admin (WorkspaceAdmin, tenant-wide)" in prices
    assert "Finance" not in prices, "what is held in one project alone publishes no prices"
    assert "Operator (Operator)" in row(told, "Settle an attempt", "Take a release")
    assert row(told, "Read the journal", "Read what goes").count("(") == 5
    assert "this project; requester@" in told
    assert re.search(r"\d+ min", row(told, "Roles lent for a time", "Environments"))
    assert "production" in row(told, "Environments", "Service accounts")
    assert "Suspend…" in told
    assert re.search(r'danger"[^>]*>Suspend…', html), (
        "What stops work is not offered as if it were the thing to do"
    )
    assert "No pool" not in told
    assert re.search(r'href="/admin/projects/environment/[0-9a-f-]+/change/">production<', html)
    kill = signed_in(house.world.workspace_admin).get(
        reverse("admin:projects_kill", args=[house.world.project])
    )
    assert "Open runs that are not being stopped already 1" in words(kill.content.decode())


def test_who_can_do_what_names_nobody_whom_the_command_would_refuse(tenant_id: str) -> None:
    """By a lent role nobody decides on members or the policy, and what holds in all projects is for who is
    that in all of them."""
    small = House(tenant_id)
    w = small.world
    lend(w.workspace_admin, w.requester, "WorkspaceAdmin")
    lent = "Requester (WorkspaceAdmin, lent by Workspace Admin)"
    ends = {
        "Publish the tenant's policy": "Add and change members",
        "Add and change members": "Add environments",
        "Add environments": "Read the journal",
    }

    def rows() -> dict[str, str]:
        told = words(page_of(small, w.reviewer)).partition("Who can do what here")[2]
        return {begins: row(told, begins, ends[begins]) for begins in ends}

    told = rows()
    assert lent in told["Add environments"], "which a lent role does open"
    for own in ("Publish the tenant's policy", "Add and change members"):
        assert "Workspace Admin (WorkspaceAdmin" in told[own]
        assert "lent by" not in told[own]
    policy = told["Publish the tenant's policy"]
    assert "Workspace Admin (WorkspaceAdmin, in each project)" in policy
    second = onboard_project(w.system(), slug="second", name="Second", environments=[], members=[])
    policy = rows()["Publish the tenant's policy"]
    assert "Tenant Admin (WorkspaceAdmin, tenant-wide)" in policy
    assert "(WorkspaceAdmin, in each project)" not in policy
    as_admin = NewMember(w.workspace_admin.actor.subject, ("WorkspaceAdmin",))
    add_member(system(tenant_id, "test"), project_id=UUID(second["projectId"]), member=as_admin)
    policy = rows()["Publish the tenant's policy"]
    assert "Workspace Admin (WorkspaceAdmin, in each project)" in policy


def test_a_reader_is_offered_nothing_and_others_are_told_nothing(house: House) -> None:
    told = words(page_of(house, house.world.observer))
    assert "Suspend…" not in told
    assert "You may look." in told
    assert "Service accounts All" not in told
    assert "End it" not in told
    stranger = second_world(house.tenant)
    assert signed_in(stranger.tenant_admin).get(url_of(house)).status_code == 404


def test_a_role_whose_lender_left_gives_nothing_and_many_are_bounded(
    tenant_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = House(tenant_id)
    lend(small.world.reviewer, small.world.requester)
    monkeypatch.setattr(effective_grants, "MOST", 3)
    monkeypatch.setattr(effective_grants, "NAMED", 1)
    told = words(page_of(small, small.world.workspace_admin))
    assert "The first 3 stand here" in told
    with reading(small.system):
        project = Delegation.objects.get().project
        past = effective_grants.loans(project, {}, clock.now() + timedelta(days=9))
    assert past == []
    remove_member(small.world.tenant_admin, membership_id=small.world.memberships["reviewer"])
    suspend_project(small.world.workspace_admin, project_id=small.world.project, reason=ODD)
    html = page_of(small, small.world.workspace_admin)
    assert "no runs and nothing new is dispatched" in words(html)
    assert ODD in words(html)
    assert "Nobody has lent a role here." in words(html)
    kill_project(small.world.workspace_admin, project_id=small.world.project, reason="A key is out")
    told = words(page_of(small, small.world.workspace_admin))
    assert "Its kill switch is thrown" in told
    assert f"thrown by {small.world.workspace_admin.actor.subject}" in told
    assert "Throw the kill switch…" not in told


def test_a_role_is_lent_to_somebody_chosen_or_written_and_ended_from_its_page(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = signed_in(house.world.reviewer)
    where = reverse("admin:projects_delegation_changelist")
    html = client.get(where).content.decode()
    assert '<option value="">Choose a member</option>' in html
    assert "Lent by" in words(html)
    with reading(house.system):
        loan = Delegation.objects.get()
    page = reverse("admin:projects_delegation_change", args=[loan.pk])
    assert f'href="{page}' in html
    end = reverse("admin:projects_revoke_delegation", args=[loan.pk])
    assert f'href="{end}"' in client.get(page).content.decode()
    assert f'href="{end}"' not in page_at(house.world.observer, page)
    monkeypatch.setattr(delegations, "MOST", 2)
    html = client.get(where).content.decode()
    assert "Choose a member" not in html
    assert '<input id="delegate" name="delegate"' in html


def test_a_list_of_loans_says_why_one_cannot_be_ended_only_beside_others_that_can(tenant_id: str) -> None:
    w = House(tenant_id).world
    where = reverse("admin:projects_delegation_changelist")
    over, own = lend(w.reviewer, w.requester), lend(w.reviewer, w.observer)
    lend(w.reviewer2, w.observer)
    revoke_delegation(w.reviewer, delegation_id=over)

    def acts(member: Context) -> list[str]:
        cells = re.findall(r"field-end_it[^>]*><div>(.*?)</div>", page_at(member, where))
        return [re.sub(r"<[^>]+>", "", cell) for cell in cells]

    assert acts(w.reviewer) == ["one of the two, or an admin, ends it", "End it…", "over"]
    revoke_delegation(w.reviewer, delegation_id=own)
    assert acts(w.reviewer) == []
    assert "What can be done" not in page_at(w.reviewer, where)


def page_at(member: Context, url: str) -> str:
    return signed_in(member).get(url).content.decode()


def test_a_run_that_is_being_stopped_counts_until_its_worker_let_go(tenant_id: str) -> None:
    small = House(tenant_id)
    run = small.run("single")
    small.hand().take()
    cancel_run(small.world.requester, run_id=run, reason="not wanted")
    assert "Open runs 1 1 Cancelling" in words(page_of(small, small.world.workspace_admin))


def test_the_page_asks_a_known_number_of_questions(house: House) -> None:
    client = signed_in(house.world.workspace_admin)
    client.get(url_of(house))
    with within_budget("console project"):
        assert client.get(url_of(house)).status_code == 200
