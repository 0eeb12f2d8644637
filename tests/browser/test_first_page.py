"""The first page as an operator, a finance person and an auditor use it, by mouse and by keyboard."""

import re
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.test_every_page import sound
from tests.browser.visitor import Visitor
from tests.support.proposals import HOSTILE, change
from tests.support.receipts import costing, effect
from tests.support.running import House

pytestmark = [pytest.mark.browser, pytest.mark.one_day]


@pytest.fixture(scope="module")
def house() -> House:
    return House(f"t-{uuid4().hex[:16]}", budget="100")


@pytest.fixture(scope="module")
def doubtful(house: House) -> UUID:
    """A run of which nobody knows whether its effect happened, beside others that are through or wait."""
    worker = house.hand("eu-1", slots=8)
    run_id = house.run("gated")
    work = worker.take()
    asked = worker.ask(work, change())
    house.decide(asked.approval_id)
    worker.authorize(work, asked.approval_id, change())
    left = [effect(asked.approval_id, change())]
    worker.report(work, "Uncertain", "uncertain", reason="lost after the push", receipts=left)
    house.run("single")
    worker.report(worker.take(), output={"found": 1}, receipts=[costing("3.25")])
    house.run("gated")
    worker.ask(worker.take(), change(), summary=HOSTILE[0], park=True)
    return run_id


def at_every_width(visitor: Visitor) -> None:
    for width, scheme in ((390, "light"), (820, "dark"), (1440, "dark")):
        visitor.page.emulate_media(color_scheme=scheme)
        visitor.page.set_viewport_size({"width": width, "height": 900})
        sound(visitor)
    visitor.page.emulate_media(color_scheme="light")


def test_an_operator_goes_from_the_first_page_to_what_is_uncertain_and_settles_it(
    house: House, doubtful: UUID, visit: Visit
) -> None:
    left_open = visit().sign_in(house.world.operator)
    left_open.reads("One thing needs you in The main project")
    operator = visit().sign_in(house.world.operator)
    operator.reads("One thing needs you in The main project")
    expect(operator.part(".fc-needs li").first).to_contain_text("Uncertain")
    at_every_width(operator)
    operator.page.keyboard.press("/")
    operator.page.keyboard.type(f"…{str(doubtful)[-8:]}")
    operator.page.keyboard.press("Enter")
    operator.reads("could mean in The main project")
    operator.follow(f"gated …{str(doubtful)[-8:]}")
    operator.page.wait_for_url(f"**/runs/run/{doubtful}/change/")
    operator.page.get_by_role("link", name="Uncertain attempts").first.click()
    for words in ("It may or may not have happened", "eu-1", "effect receipt", "publish wants to commit"):
        operator.reads(words)
    at_every_width(operator)
    operator.follow("Settle")
    operator.page.get_by_label("The effect happened").check()
    operator.page.get_by_label(re.compile("evidence|found out", re.IGNORECASE)).first.fill(
        "The branch has it."
    )
    operator.page.get_by_role("button", name=re.compile("^Settle")).click()
    operator.reads("Settled, with your evidence.")
    operator.open("/admin/")
    operator.reads("Nothing needs you in The main project")
    operator.reads("No attempt is uncertain")
    left_open.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(left_open.part(".fc-first h1")).to_contain_text("Nothing needs you in The main project")
    expect(left_open.page).to_have_title(re.compile("^Nothing needs you"))
    charts = left_open.part(".fc-charts")
    charts.evaluate("part => part.prepend('as it was')")
    left_open.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(charts).to_contain_text("as it was")
    left_open.page.evaluate("document.querySelector('[data-live-whole]').dataset.liveWhole = '0'")
    left_open.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(charts).not_to_contain_text("as it was")
    expect(charts.locator("section").first).to_be_visible()


def test_finance_reads_the_money_and_the_charts_without_scripts(
    house: House, doubtful: UUID, visit: Visit
) -> None:
    finance = visit(width=390, scripts=False).sign_in(house.world.finance)
    finance.reads(f"Spend against budget, {datetime.now(UTC):%B}")
    finance.reads("3.25 USD spent")
    finance.page.get_by_role("img", name=re.compile("Runs by outcome")).scroll_into_view_if_needed()
    spend = finance.part("section[aria-labelledby=chart-spend]")
    spend.get_by_text("Show as a table").click()
    expect(spend.get_by_role("cell", name="3.25").first).to_be_visible()
    finance.follow("Last 14 days")
    finance.reads("Runs by outcome, last 14 days")
    finance.page.get_by_role("button", name="Search").click()
    finance.page.get_by_role("searchbox").last.fill("sample@1.0.0")
    finance.page.get_by_role("button", name="Search", exact=True).last.click()
    finance.page.get_by_role("link", name="sample@1.0.0", exact=True).click()
    finance.reads("Published")
    finance.open("/admin/")
    assert finance.part(".fc-house").get_by_text("Journal").count() == 0


def test_an_auditor_finds_the_evidence_and_nothing_to_decide(
    house: House, doubtful: UUID, visit: Visit
) -> None:
    auditor = visit().sign_in(house.world.auditor)
    auditor.reads("Nothing needs you in The main project")
    expect(auditor.part(".fc-house")).to_contain_text("Journal")
    at_every_width(auditor)
    auditor.part(".fc-house").get_by_role("link", name=re.compile("checked|Intact|violation")).click()
    auditor.page.wait_for_url("**/factory/verification/")
    auditor.page.keyboard.press("Control+k")
    expect(auditor.part("#fc-find")).to_be_focused()
    auditor.page.keyboard.type(str(doubtful))
    auditor.page.keyboard.press("Enter")
    auditor.page.wait_for_url(f"**/runs/run/{doubtful}/change/")
    auditor.reads("gated")
    assert auditor.page.get_by_role("button", name=re.compile("Settle|Cancel the run")).count() == 0


def test_a_reviewer_switches_by_the_choice_alone_and_words_of_others_stay_words(
    house: House, doubtful: UUID, visit: Visit
) -> None:
    reviewer = visit(dark=True).sign_in(house.world.reviewer)
    reviewer.reads(HOSTILE[0])
    assert reviewer.page.get_by_role("button", name="Switch project").count() == 0
    admin = visit().sign_in(house.world.tenant_admin)
    admin.page.get_by_label("Project", exact=True).select_option(label="The main project")
    admin.reads("in The main project")
    expect(admin.page).to_have_title(re.compile("in The main project"))
