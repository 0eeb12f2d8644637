"""A person decides, by hand, on what an agent asks."""

from typing import Any
from uuid import UUID

import pytest
from playwright.sync_api import expect

from runs.selectors.answers import ApprovalResult, OfferedAttempt
from tests.browser.conftest import Visit
from tests.support.acts import revoke
from tests.support.hands import Hand
from tests.support.proposals import REPORT, change
from tests.support.receipts import effect
from tests.support.running import House

PROPOSAL = change()


def asking(house: House, proposal: Any = PROPOSAL) -> tuple[UUID, Hand, OfferedAttempt, ApprovalResult]:
    """A run that waits for a decision on a diff, with its worker let go."""
    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    return run_id, worker, work, worker.ask(work, proposal, park=True)


def page_of(asked: ApprovalResult) -> str:
    return f"/admin/approvals/approvalrequest/{asked.approval_id}/change/"


@pytest.mark.requirement("APR-30")
@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_reviewer_reads_the_diff_approves_and_the_run_goes_on(
    house: House, visit: Visit, scripts: bool
) -> None:
    run_id, worker, _, asked = asking(house)
    reviewer = visit(scripts=scripts).sign_in(house.world.reviewer)
    reviewer.follow("publish wants to commit report.md (+142)")
    reviewer.page.wait_for_url(f"**{page_of(asked)}")
    for said in ("report.md", "142 files, 18,204 lines of code.", "none yet", "The run goes on."):
        reviewer.reads(said)
    assert reviewer.part("tr.add").count() == 4
    assert reviewer.part("tr.del").count() == 1
    reviewer.press("Approve exactly this")
    reviewer.reads("Approved. The agent may do exactly this, once.")
    assert house.state(run_id) == "Running"
    again = worker.take()
    worker.authorize(again, asked.approval_id, PROPOSAL)
    worker.report(again, output={"commit": "3f2c1ab"}, receipts=[effect(asked.approval_id, PROPOSAL)])
    reviewer.open(f"/admin/runs/run/{run_id}/change/")
    reviewer.reads("Completed")
    reviewer.open(page_of(asked))
    reviewer.reads("The approval was used")


def test_changes_are_requested_with_a_reason_that_the_agent_reads(house: House, visit: Visit) -> None:
    run_id, worker, _, asked = asking(house)
    reviewer = visit().sign_in(house.world.reviewer, opening=page_of(asked))
    reviewer.expected.add(400)
    reviewer.press("Request changes")
    reviewer.reads("Nothing was decided")
    assert house.state(run_id) == "WaitingForApproval"
    reviewer.page.get_by_label("Reason").fill("State what it cost, please.")
    reviewer.press("Request changes")
    reviewer.reads("Sent back with your reason.")
    again = worker.take()
    assert again.decision is not None
    assert (again.decision.decision, again.decision.reason) == (
        "request_changes",
        "State what it cost, please.",
    )
    second = worker.ask(again, change(REPORT.replace("142", "143")), park=True)
    reviewer.open(page_of(second))
    for said in ("State what it cost, please.", "What changed since proposal 1", "Proposal 2 of this step"):
        reviewer.reads(said)


@pytest.mark.requirement("APR-12")
def test_a_page_that_has_moved_on_decides_nothing_and_keeps_the_reason(house: House, visit: Visit) -> None:
    run_id, worker, _, asked = asking(house)
    reviewer = visit().sign_in(house.world.reviewer, opening=page_of(asked))
    reviewer.look_away()
    reviewer.expected.add(409)
    house.decide(asked.approval_id, "request_changes", by=house.world.reviewer2, reason="shorter")
    second = worker.ask(worker.take(), change(REPORT.replace("142", "141")), park=True)
    reviewer.page.get_by_label("Reason").fill("The figures are those of the system.")
    reviewer.press("Approve exactly this")
    reviewer.reads("Nothing was decided")
    reviewer.reads("The figures are those of the system.")
    assert [a.state for a in house.approvals(run_id)] == ["Stale", "Pending"]
    reviewer.reads("From what you read to what waits now")
    reviewer.follow("Read the proposal that waits now")
    reviewer.page.wait_for_url(f"**{page_of(second)}")
    expect(reviewer.page.get_by_label("Reason")).to_have_value("The figures are those of the system.")
    reviewer.press("Approve exactly this")
    reviewer.reads("Approved. The agent may do exactly this, once.")
    assert house.approvals(run_id)[1].reason == "The figures are those of the system."


def test_an_open_page_notices_that_it_has_moved_on_and_keeps_what_is_typed(
    house: House, visit: Visit
) -> None:
    _, worker, _, asked = asking(house)
    reviewer = visit().sign_in(house.world.reviewer, opening=page_of(asked))
    reviewer.page.get_by_label("Reason").fill("Read half of it")
    house.decide(asked.approval_id, "request_changes", by=house.world.reviewer2, reason="shorter")
    second = worker.ask(worker.take(), change(REPORT.replace("142", "141")), park=True)
    reviewer.reads("This request has moved on")
    reviewer.reads("What you have typed is kept below.")
    expect(reviewer.page.get_by_label("Reason")).to_have_value("Read half of it")
    expect(reviewer.page.get_by_role("button", name="Approve exactly this")).to_be_hidden()
    reviewer.follow("Read the proposal that waits now")
    reviewer.page.wait_for_url(f"**{page_of(second)}")
    expect(reviewer.page.get_by_label("Reason")).to_have_value("Read half of it")


def test_an_open_page_says_what_somebody_else_decided(house: House, visit: Visit) -> None:
    _, _, _, asked = asking(house)
    reviewer = visit().sign_in(house.world.reviewer, opening=page_of(asked))
    reviewer.reads("Nothing has happened yet")
    house.decide(asked.approval_id, by=house.world.reviewer2)
    expect(reviewer.part(".fc-lead")).not_to_contain_text("Nothing has happened yet", timeout=15_000)
    expect(reviewer.part(".fc-lead")).to_contain_text("Approved by reviewer2")


@pytest.mark.requirement("IDN-17")
def test_the_requester_reads_why_not(house: House, visit: Visit) -> None:
    _, _, _, asked = asking(house)
    requester = visit().sign_in(house.world.requester, opening=page_of(asked))
    requester.reads("You asked for this, so you may not decide on it.")
    requester.reads("142 files, 18,204 lines of code.")
    expect(requester.page.get_by_role("button", name="Approve exactly this")).to_have_count(0)


def test_a_decision_needs_no_mouse_and_is_never_made_by_one_key(house: House, visit: Visit) -> None:
    run_id, _, _, asked = asking(house)
    reviewer = visit().sign_in(house.world.reviewer, opening="/admin/approvals/approvalrequest/")
    keys = reviewer.page.keyboard
    keys.press("/")
    expect(reviewer.page.locator("#searchbar")).to_be_focused()
    keys.press("Escape")
    keys.press("Control+k")
    expect(reviewer.page.locator("#fc-find")).to_be_focused()
    reviewer.open("/admin/approvals/approvalrequest/")
    keys.press("j")
    keys.press("Enter")
    reviewer.page.wait_for_url(f"**{page_of(asked)}")
    keys.press("?")
    reviewer.reads("Nothing is decided by a key alone.")
    keys.press("Escape")
    for key, name in (("r", "Reject"), ("c", "Request changes"), ("a", "Approve exactly this")):
        keys.press(key)
        expect(reviewer.page.get_by_role("button", name=name, exact=True)).to_be_focused()
    assert house.state(run_id) == "WaitingForApproval"
    reviewer.page.get_by_label("Reason").focus()
    keys.type("r, a and c on the train?")
    expect(reviewer.page.get_by_label("Reason")).to_have_value("r, a and c on the train?")
    keys.press("Tab")
    expect(reviewer.page.get_by_role("button", name="Approve exactly this")).to_be_focused()
    keys.press("Enter")
    reviewer.reads("Approved. The agent may do exactly this, once.")
    assert house.approvals(run_id)[0].reason == "r, a and c on the train?"


LONG = (
    "diff --git a/values.py b/values.py\n--- a/values.py\n+++ b/values.py\n@@ -1 +1,600 @@\n-old\n"
    + "".join(f"+value_{number} = {number}\n" for number in range(600))
)


def test_on_a_phone_a_long_diff_is_folded_and_the_decision_is_one_touch_away(
    house: House, visit: Visit
) -> None:
    run_id, *_ = asking(house, change(LONG + REPORT))
    for scripts in (False, True):
        reviewer = visit(width=390, scripts=scripts).sign_in(house.world.reviewer)
        reviewer.open("/admin/approvals/approvalrequest/")
        reviewer.reads("Only what you may decide at this moment.")
        assert reviewer.measure("document.documentElement.scrollWidth <= innerWidth")
        reviewer.follow("publish wants to commit report.md (+142)")
        reviewer.reads("532 more lines: 532 added")
        last = reviewer.part("td.t").filter(has_text="value_599")
        expect(last).to_have_count(1)
        expect(last).to_be_hidden()
        if scripts:
            reviewer.press("Unfold all")
        else:
            reviewer.page.get_by_text("532 more lines").click()
        expect(last).to_be_visible()
        reviewer.follow("Go to the decision")
        expect(reviewer.page.get_by_role("button", name="Approve exactly this")).to_be_in_viewport()
        assert reviewer.measure("document.documentElement.scrollWidth <= innerWidth")
    reviewer.press("Approve exactly this")
    reviewer.reads("Approved. The agent may do exactly this, once.")
    assert house.state(run_id) == "Running"


def test_an_open_page_closes_when_no_answer_would_be_taken_and_keeps_what_is_typed(
    house: House, visit: Visit
) -> None:
    run_id, _, _, asked = asking(house)
    reviewer = visit().sign_in(house.world.reviewer, opening=page_of(asked))
    reviewer.page.get_by_label("Reason").fill("Read half of it")
    reviewer.page.set_viewport_size({"width": 390, "height": 800})
    shortcut = reviewer.page.get_by_role("link", name="Go to the decision")
    expect(shortcut).to_be_visible()
    revoke(house, "drain", release_id=house.release)
    reviewer.reads("What you have typed is kept below.")
    reviewer.reads("Nobody, as things stand.")
    expect(shortcut).to_be_hidden()
    expect(reviewer.page.get_by_label("Reason")).to_have_value("Read half of it")
    expect(reviewer.page.get_by_role("button", name="Approve exactly this")).to_be_hidden()
    expect(reviewer.page.get_by_role("button", name="Reject")).to_be_hidden()
    reviewer.open(f"/admin/runs/run/{run_id}/change/")
    reviewer.reads("No answer on publish would be taken as things stand")
    reviewer.follow("Read the question")
    reviewer.page.wait_for_url(f"**{page_of(asked)}")


def test_an_open_page_of_who_may_not_decide_offers_nothing_beside_that_no_answer_would_be_taken(
    house: House, visit: Visit
) -> None:
    """The last resort, and who else may, are gone with the answers, on pages without a form too."""
    _, _, _, asked = asking(house)
    admin = visit().sign_in(house.world.platform_admin, opening=page_of(asked))
    requester = visit().sign_in(house.world.requester, opening=page_of(asked))
    glass = admin.page.get_by_role("link", name="Break the glass…")
    expect(glass).to_be_visible()
    admin.reads("others may.")
    requester.reads("You asked for this, so you may not decide on it.")
    revoke(house, "drain", release_id=house.release)
    expect(glass).to_be_hidden(timeout=15_000)
    for reader in (admin, requester):
        expect(reader.part("#decision")).to_contain_text("No answer would be taken as things stand.")
        for gone in ("others may.", "You may not decide", "you may not decide"):
            expect(reader.part("#decision")).not_to_contain_text(gone)
