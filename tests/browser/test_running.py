"""The page of a run: it keeps itself up to date, and an operator stops a run there."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.support.receipts import receipt
from tests.support.running import House


def page_of(run_id: object) -> str:
    return f"/admin/runs/run/{run_id}/change/"


def test_the_page_follows_the_run_while_it_is_open(house: House, visit: Visit) -> None:
    run_id = house.run("single")
    worker = house.hand()
    watcher = visit().sign_in(house.world.operator, opening=page_of(run_id))
    watcher.reads("look waits for a worker")
    watcher.page.get_by_text("Cancel this run").click()
    watcher.page.get_by_label("Reason").fill("half a sent")
    work = worker.take()
    watcher.reads("Held, token")
    expect(watcher.page.get_by_label("Reason")).to_have_value("half a sent")
    worker.report(work, output={"found": 3}, receipts=[receipt()])
    watcher.reads("Its one step has succeeded.")
    expect(watcher.part(".fc-row .fc-badge").first).to_contain_text("Completed")


LAST_AND_SHORTEST = """() => [...document.querySelectorAll(".fc-lane > .fc-span")].map((mark) => {
  mark.style.setProperty("--from", "99.5%");
  mark.style.width = "0.5%";
  return mark.getBoundingClientRect().right - mark.parentElement.getBoundingClientRect().right;
})"""
"""By how many pixels each kind of mark passes the end of the axis where it is the last, and of no length."""


def test_no_mark_of_a_timeline_passes_the_end_of_its_axis_on_a_phone(house: House, visit: Visit) -> None:
    run_id, worker = house.run("gated"), house.hand()
    worker.ask(worker.take(), park=True)
    watcher = visit(width=390).sign_in(house.world.operator, opening=page_of(run_id))
    watcher.reads("until now")
    passed = watcher.measure(LAST_AND_SHORTEST)
    assert len(passed) > 3
    assert max(passed) < 0.1


@pytest.mark.requirement("RUN-14")
@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_an_operator_cancels_a_run(house: House, visit: Visit, scripts: bool) -> None:
    run_id = house.run("single")
    operator = visit(scripts=scripts).sign_in(house.world.operator)
    operator.follow("Runs")
    operator.follow(f"…{str(run_id)[-8:]}")
    operator.page.get_by_text("Cancel this run").click()
    operator.page.get_by_label("Reason").fill("The wrong branch")
    operator.press("Cancel the run")
    operator.reads("The run was asked to stop.")
    operator.reads("It was cancelled: The wrong branch")
    assert house.state(run_id) == "Cancelled"


def test_the_place_is_chosen_without_scripts(house: House, visit: Visit) -> None:
    admin = visit(scripts=False).sign_in(house.world.tenant_admin)
    admin.page.get_by_label("Project", exact=True).select_option(label="Whole tenant")
    admin.press("Switch project")
    admin.reads(f"needs you in Tenant {house.tenant}")
