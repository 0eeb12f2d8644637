"""Quorums, lent roles, the broken glass and many at once, as people see and use them; wide and on a phone."""

import os
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from approvals.selectors import approval
from factory.kernel.tenancy import reading
from tests.browser.conftest import Visit
from tests.browser.visitor import Visitor
from tests.runs.test_spend import threshold
from tests.support.delegations import lend
from tests.support.proposals import REPORT, change, said
from tests.support.running import House

pytestmark = pytest.mark.browser
INBOX = "/admin/approvals/approvalrequest/"
PICTURES = os.environ.get("PICTURES_OF_PAGES", "")
CALL = {
    "kind": "tool-call",
    "tool": "deploy",
    "description": "Roll out 1.4.2 to staging",
    "arguments": {"service": "billing", "replicas": 3, "image": "billing@sha256:77", "env": {"DEBUG": "0"}},
}


@pytest.fixture(scope="module")
def house() -> House:
    return House(f"t-{uuid4().hex[:16]}")


@pytest.fixture(scope="module")
def asked(house: House) -> dict[str, UUID]:
    """One request of each sort, of real runs."""
    worker, made = house.hand(slots=16), {}
    house.run("gated")
    work = worker.take()
    worker.ask(work, change(), park=False)
    made["changed"] = worker.ask(
        work, change(REPORT.replace("142", "143"), "Once more"), park=True
    ).approval_id
    house.run("gated")
    made["call"] = worker.ask(worker.take(), CALL, summary="deploy billing 1.4.2", park=True).approval_id
    house.run("narrow")
    made["two"] = worker.ask(worker.take(), said("Rotate the key."), park=True).approval_id
    house.run("gated")
    made["glass"] = worker.ask(worker.take(), park=True).approval_id
    [made["human"]] = [view.id for view in house.pending(house.run("word"))]
    threshold(house, 10)
    [made["spend"]] = [
        view.id for view in house.pending(house.run(limits={"maxCostUsd": 12, "maxMinutes": 30}))
    ]
    threshold(house, 1000)
    return made


def picture(visitor: Visitor, name: str) -> None:
    """Kept where somebody asked for it, to be looked at."""
    if PICTURES:
        visitor.page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


def open_(visitor: Visitor, approval_id: UUID) -> None:
    visitor.open(f"{INBOX}{approval_id}/change/")


@pytest.mark.parametrize("width", [390, 1440])
def test_each_sort_is_read_on_one_page(
    house: House, asked: dict[str, UUID], visit: Visit, width: int
) -> None:
    reviewer = visit(width=width).sign_in(house.world.workspace_admin)
    open_(reviewer, asked["changed"])
    reviewer.reads("What changed since proposal 1")
    reviewer.reads("143 files")
    picture(reviewer, f"changed-{width}")
    open_(reviewer, asked["call"])
    reviewer.reads("billing@sha256:77")
    picture(reviewer, f"call-{width}")
    open_(reviewer, asked["two"])
    reviewer.reads("2 different people have to approve")
    reviewer.reads("Once 2 different people have approved, exactly the proposal below happens, once.")
    picture(reviewer, f"quorum-{width}")
    open_(reviewer, asked["human"])
    reviewer.reads("The run asks a person and waits.")
    reviewer.reads("your answer is the whole of this step")
    assert reviewer.page.get_by_role("button", name="Request changes").count() == 0
    picture(reviewer, f"human-{width}")
    open_(reviewer, asked["spend"])
    reviewer.reads("The money is set aside if the budgets have it, and the run begins or goes on.")
    picture(reviewer, f"spend-{width}")
    reviewer.open(INBOX)
    reviewer.reads("0 of 2")
    picture(reviewer, f"inbox-{width}")
    assert reviewer.measure("document.documentElement.scrollWidth <= innerWidth + 1")
    admin = visit(width=width).sign_in(house.world.platform_admin)
    admin.open(f"{INBOX}{asked['glass']}/break-glass/")
    admin.reads("outside the rule")
    picture(admin, f"glass-{width}")
    admin.open("/admin/projects/delegation/")
    admin.reads("You hold no role here that could be lent.")
    picture(admin, f"delegations-{width}")


def test_two_people_one_after_the_other(house: House, asked: dict[str, UUID], visit: Visit) -> None:
    first = visit().sign_in(house.world.workspace_admin)
    open_(first, asked["two"])
    first.press("Approve exactly this")
    first.reads("Your approval is kept: 1 of 2")
    first.reads("You have approved. Nothing happens before 1 more person approves.")
    assert first.page.get_by_role("button", name="Approve exactly this").count() == 0
    assert first.page.get_by_role("button", name="Reject").count() == 1
    picture(first, "vote")
    first.page.set_viewport_size({"width": 390, "height": 900})
    picture(first, "vote-390")
    second = visit().sign_in(house.world.tenant_admin)
    open_(second, asked["two"])
    second.reads("1 more needed")
    second.press("Approve exactly this")
    second.reads("Approved. The agent may do exactly this, once.")


def test_a_lent_role_is_lent_used_and_taken_back(house: House, asked: dict[str, UUID], visit: Visit) -> None:
    loan = lend(house.world.reviewer, house.world.observer)
    delegate = visit(width=390).sign_in(house.world.observer)
    open_(delegate, asked["call"])
    delegate.reads(f"for {house.world.reviewer.actor.subject}, who has lent you the role")
    picture(delegate, "delegate-390")
    owner = visit(width=390).sign_in(house.world.reviewer)
    owner.open("/admin/projects/delegation/")
    owner.reads("Lend a role of yours")
    picture(owner, "lend-390")
    owner.open(f"/admin/projects/delegation/{loan}/revoke/")
    owner.press("End it now")
    owner.reads("Ended. It gives nothing any more.")
    delegate.expected.add(403)
    open_(delegate, asked["call"])
    delegate.reads("You may not")


def test_the_glass_is_broken_on_purpose_only(house: House, asked: dict[str, UUID], visit: Visit) -> None:
    admin = visit().sign_in(house.world.platform_admin)
    open_(admin, asked["glass"])
    admin.reads("You may not decide on this.")
    admin.page.get_by_role("link", name="Break the glass").click()
    admin.page.get_by_label("Reason").fill("The site is down and nobody answers.")
    admin.press("Break the glass and approve exactly this")
    admin.reads("Decided by break-glass")
    picture(admin, "broken")
    reviewer = visit().sign_in(house.world.reviewer)
    reviewer.reads("Decided past you")
    picture(reviewer, "past-you")


def test_many_at_once_without_scripts(visit: Visit) -> None:
    house = House(f"t-{uuid4().hex[:16]}")
    worker = house.hand("many", slots=16)
    asked = []
    for _ in range(3):
        house.run("gated")
        asked.append(worker.ask(worker.take(), park=True).approval_id)
    house.decide(asked[2], "reject", by=house.world.reviewer2)
    reviewer = visit(scripts=False).sign_in(house.world.reviewer)
    reviewer.open(f"{INBOX}?whose=all")
    for approval_id in asked:
        reviewer.page.locator(f'input[name="_selected_action"][value="{approval_id}"]').check()
    reviewer.page.locator('select[name="action"]').select_option("approve_selected")
    reviewer.page.locator('button[name="index"]').click()
    reviewer.reads("Nothing is decided yet")
    reviewer.reads("Will be approved")
    reviewer.page.get_by_text("1 left out, and why").click()
    reviewer.reads("Left out. It is Rejected")
    picture(reviewer, "several")
    reviewer.page.set_viewport_size({"width": 390, "height": 900})
    picture(reviewer, "several-390")
    house.decide(asked[0], "reject", by=house.world.reviewer2)
    reviewer.press("Approve exactly these (2 of 3)")
    reviewer.reads("1 of 2 decided")
    picture(reviewer, "outcomes")
    with reading(house.system):
        assert {approval(one).state for one in asked} == {"Approved", "Rejected"}
