"""The first page: what needs each person, how the house stands, and charts that say what they found."""

import re
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

import config.urls  # noqa: F401 - it is what registers the pages
from factory.console.dashboard import (
    Card,
    Figure,
    FirstPage,
    Need,
    Needs,
    _urgency,
    lead_of,
    title_of,
    well_of,
    window,
)
from factory.evidence.verification import verify_and_act
from factory.kernel import clock
from factory.kernel.context import Context
from factory.kernel.tenancy import reading
from runs.models import Run, Worker
from tests.console.test_pages import signed_in
from tests.support.proposals import said
from tests.support.queries import within_budget
from tests.support.receipts import costing, effect
from tests.support.running import House

pytestmark = pytest.mark.one_day


@pytest.fixture(scope="module")
def house() -> House:
    """One attempt that nobody is sure of, two questions, a run that failed, one that is through, one open."""
    made = House(f"t-{uuid4().hex[:16]}")
    worker = made.hand("worker-one", slots=8)
    made.run("gated")
    work = worker.take()
    asked = worker.ask(work)
    made.decide(asked.approval_id)
    worker.authorize(work, asked.approval_id)
    worker.report(work, "Uncertain", "uncertain", reason="lost", receipts=[effect(asked.approval_id)])
    for words in ("Commit 3 files", "Send <b>the digest</b>"):
        made.run("gated")
        worker.ask(worker.take(), said(words), summary=words, park=True)
    made.run("single")
    worker.report(worker.take(), output={"found": 1}, receipts=[costing("2.50")])
    made.run("stubborn")
    worker.fail(worker.take(), "permanent")
    made.run("diamond")
    worker.take()
    return made


def first(member: Context, query: str = "") -> tuple[FirstPage, str]:
    answer = signed_in(member).get(f"/admin/{query}")
    assert answer.status_code == 200
    return answer.context["first"], " ".join(answer.content.decode().split())


def failed_at(house: House) -> datetime:
    with reading(house.system):
        ended: datetime = Run.objects.values_list("finished_at", flat=True).get(state="Failed")
    return ended


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_an_operator_reads_what_is_uncertain_first_and_what_is_well(house: House) -> None:
    page, html = first(house.world.operator)
    assert page.title == "One thing needs you in The main project"
    assert [(need.state, need.action, need.klass) for need in page.needs] == [
        ("Uncertain", "Settle", "shared-write")
    ]
    assert page.needs[0].url.endswith("#settle")
    assert "nobody repeats it until you say which" in page.needs[0].where
    assert "no event is set aside" in page.well.lower()
    told = {each.label: f"{each.value} {each.note}" for each in page.figures}
    assert told["Open runs"] == "4 2 Running, 2 WaitingForApproval"
    assert told["Workers"].startswith("1 ")
    assert "of 8 slots in use" in told["Workers"]
    assert "Oldest pending approval" in told
    assert "title='1 waiting'" in html.replace('"', "'")


def test_a_reviewer_decides_by_the_time_left_and_reads_words_as_words(house: House) -> None:
    page, html = first(house.world.reviewer)
    assert page.title == "Two things need you in The main project"
    assert [need.title for need in page.needs] == ["Commit 3 files", "Send <b>the digest</b>"]
    assert page.lead.startswith("The next one ends in ")
    assert "Send &lt;b&gt;the digest&lt;/b&gt;" in html
    assert "<b>the digest" not in html
    assert "requester" in page.needs[0].where


def test_charts_state_their_finding_and_offer_it_as_a_table(house: House) -> None:
    page, html = first(house.world.observer)
    assert page.title == "Nothing needs you in The main project"
    charts = {each.key: each for each in page.charts}
    assert list(charts) == ["outcomes", "durations", "ages", "spend"]
    assert charts["outcomes"].finding == (
        f"1 Completed, 1 Failed. It failed in the hour from {failed_at(house):%H}:00 UTC, "
        "of the class permanent."
    )
    assert charts["outcomes"].table is not None
    counted = [row[1:] for row in charts["outcomes"].table.rows]
    assert [sum(map(int, column)) for column in zip(*counted, strict=True)] == [1, 1, 0]
    assert "Of 2 attempts without a question to people" in charts["durations"].finding
    assert "lately half took under 1 s." in charts["durations"].finding
    assert "The slowest were in the hour from " in charts["durations"].finding
    assert "Two are pending; none is late." in charts["ages"].finding
    assert "2.50 USD spent" in charts["spend"].finding
    assert html.count("Show as a table") == 4
    assert all(f'aria-label="{each.title}. ' in html for each in page.charts)
    by_day, _ = first(house.world.observer, "?span=days")
    assert by_day.span == "days"
    assert by_day.charts[0].title == "Runs by outcome, last 14 days"


def test_nothing_to_draw_says_what_would_be_there(tenant_id: str) -> None:
    fresh = House(tenant_id)
    page, html = first(fresh.world.requester)
    assert [each.plot for each in page.charts if each.key in ("outcomes", "durations", "spend")] == [None] * 3
    assert "No run has ended in this time." in html
    assert "You have started none here." in html
    fresh.run("single")
    page, _ = first(fresh.world.requester)
    [mine] = page.asides[0].items
    assert mine.state == "Accepted"
    assert mine.note == "No live worker can do analyst/look."


def test_everybody_sees_what_they_may_and_no_more(house: House) -> None:
    labels = {
        name: {figure.label for figure in first(getattr(house.world, name))[0].figures}
        for name in ("requester", "auditor", "operator", "finance")
    }
    money = f"Budget of {datetime.now(UTC):%B}"
    assert labels["requester"] == {"Open runs", "Workers", "Oldest pending approval", money}
    assert "Journal" in labels["auditor"]
    assert "Outbox lag" not in labels["auditor"]
    assert {"Journal", "Outbox lag"} <= labels["operator"]
    assert money in labels["finance"]
    assert "Journal" not in labels["finance"]


def test_runs_of_ones_own_are_for_who_could_start_some_and_lead_to_all_of_them(house: House) -> None:
    def own(member: Context) -> list[Card]:
        return [one for one in first(member)[0].asides if one.title == "Runs that you started"]

    assert own(house.world.reviewer) == own(house.world.finance) == []
    [none] = own(house.world.operator)
    assert (none.items, none.more_url) == ((), "")
    [some] = own(house.world.requester)
    assert (len(some.items), some.more_label) == (4, "These are the newest; see all of yours")
    client = signed_in(house.world.requester)
    with reading(house.system):
        mine = Run.objects.filter(requester_person=house.world.requester.actor.person).count()
    assert mine > 4
    assert len(client.get(some.more_url).context["cl"].result_list) == mine
    assert not client.get(some.more_url.replace("requester%40", "operator%40")).context["cl"].result_list


def test_the_first_page_asks_the_database_a_known_number_of_questions(house: House) -> None:
    client = signed_in(house.world.platform_admin)
    place = f"{house.tenant}/{house.world.project}"
    client.post("/admin/place/", {"place": place})
    client.get("/admin/")
    with within_budget("console first page"):
        assert client.get("/admin/").status_code == 200
    verify_and_act()
    with within_budget("console first page"):
        assert "rules checked at" in client.get("/admin/").text


NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def need(title: str, *, open_for: int, left: int | None = None, uncertain: bool = False) -> Need:
    ends = NOON + timedelta(minutes=left) if left is not None else None
    since = NOON - timedelta(minutes=open_for)
    return Need(title, "/", "Pending", "wait", "Decide", since, ends, uncertain=uncertain)


def test_what_is_uncertain_comes_first_then_what_ends_then_what_has_waited() -> None:
    listed = [
        need("set aside long ago", open_for=90),
        need("ends late", open_for=5, left=300),
        need("set aside lately", open_for=2),
        need("nobody knows", open_for=1, uncertain=True),
        need("ends soon", open_for=1, left=65),
    ]
    assert [each.title for each in sorted(listed, key=_urgency)] == [
        "nobody knows", "ends soon", "ends late", "set aside long ago", "set aside lately",
    ]  # fmt: skip
    kinds = [Needs(tuple(listed), 5, "nothing waits"), Needs((), 0, "the relay keeps up")]
    alarm = Figure("Workers", "0", alarm="No worker is online.")
    assert lead_of(listed, kinds, [alarm], NOON) == "The next one ends in 1 h 5 min. No worker is online."
    assert well_of(kinds) == "The relay keeps up."
    assert title_of(5, "usage-reports") == "Five things need you in usage-reports"
    assert title_of(1, "x") == "One thing needs you in x"
    assert title_of(150, "x") == "More than 99 things need you in x"


def test_windows_end_with_the_hour_or_the_day_that_is_running() -> None:
    at = datetime(2026, 11, 30, 10, 31, 5, tzinfo=UTC)
    hours, days = window("hours", at), window("days", at)
    assert (hours.end, hours.end - hours.start) == (
        at.replace(hour=11, minute=0, second=0),
        timedelta(days=1),
    )
    assert hours.names[0] == "11:00 UTC"
    assert [mark for mark in hours.marks if mark] == ["12:00", "18:00", "00:00", "06:00"]
    assert (days.names[0], days.names[-1]) == ("17 Nov", "30 Nov")


def test_what_silent_workers_held_is_told_as_it_stands(tenant_id: str) -> None:
    own = House(tenant_id)
    own.run("single")
    worker = own.hand("quiet")
    worker.take()

    def told() -> str:
        page, _ = first(own.world.operator)
        return next(each.alarm for each in page.figures if each.label == "Workers")

    Worker.objects.filter(pool_id=own.pool).update(last_seen_at=clock.now() - timedelta(minutes=9))
    assert told() == (
        "The worker quiet has fallen silent; what it held is taken back some seconds after its lease has "
        "ended."
    )
    ended = "UPDATE runs_lease SET expires_at = now() - interval '9 min' WHERE tenant_id = %s"
    own._owner(ended, [own.tenant])
    assert told() == "The worker quiet has fallen silent; 1 lease is over, and not taken back yet."
