"""A person decides, by hand, on what an agent asks."""

from uuid import UUID

import pytest
from playwright.sync_api import expect

from runs.answers import ApprovalAnswer, Assignment
from tests.browser.conftest import Visit
from tests.browser.proposals import REPORT, change
from tests.support.running import Hand, House, effect

PROPOSAL = change()


def asking(house: House) -> tuple[UUID, Hand, Assignment, ApprovalAnswer]:
    """A run that waits for a decision on a diff, with its worker let go."""
    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    return run_id, worker, work, worker.ask(work, PROPOSAL, park=True)


def page_of(asked: ApprovalAnswer) -> str:
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
    reviewer.expected.add(409)
    house.decide(asked.approval_id, "request_changes", by=house.world.reviewer2, reason="shorter")
    second = worker.ask(worker.take(), change(REPORT.replace("142", "141")), park=True)
    reviewer.page.get_by_label("Reason").fill("The figures are those of the system.")
    reviewer.press("Approve exactly this")
    reviewer.reads("Nothing was decided")
    reviewer.reads("The figures are those of the system.")
    assert [a.state for a in house.approvals(run_id)] == ["Stale", "Pending"]
    reviewer.follow("Read the proposal that waits now")
    reviewer.page.wait_for_url(f"**{page_of(second)}")
    reviewer.press("Approve exactly this")
    reviewer.reads("Approved. The agent may do exactly this, once.")


@pytest.mark.requirement("IDN-17")
def test_the_requester_reads_why_not(house: House, visit: Visit) -> None:
    _, _, _, asked = asking(house)
    requester = visit().sign_in(house.world.requester, opening=page_of(asked))
    requester.reads("You asked for this, so you may not decide on it.")
    requester.reads("142 files, 18,204 lines of code.")
    expect(requester.page.get_by_role("button", name="Approve exactly this")).to_have_count(0)


def test_a_decision_needs_no_mouse(house: House, visit: Visit) -> None:
    run_id, _, _, asked = asking(house)
    reviewer = visit().sign_in(house.world.reviewer, opening=page_of(asked))
    reviewer.page.get_by_label("Reason").focus()
    reviewer.page.keyboard.type("Read on the train")
    reviewer.page.keyboard.press("Tab")
    expect(reviewer.page.get_by_role("button", name="Approve exactly this")).to_be_focused()
    reviewer.page.keyboard.press("Enter")
    reviewer.reads("Approved. The agent may do exactly this, once.")
    assert house.approvals(run_id)[0].reason == "Read on the train"
