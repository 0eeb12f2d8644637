"""What a run waits for, who ends that, and what each person reads of it."""

import re
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.urls import reverse

from approvals.commands import decide_approval
from approvals.selectors import ApprovalView, Right, right_to_decide
from factory.console.site import site
from factory.kernel.context import Context
from factory.kernel.tenancy import reading
from runs.admin.detail import waits
from runs.admin.detail.facts import read
from runs.admin.tables.attention import with_short_ids
from runs.commands import cancel_run
from runs.models import Lease, Run
from tests.console.test_pages import signed_in
from tests.console.test_run_page import page_of
from tests.support.acts import revoke, ruled
from tests.support.approvals import let_expire
from tests.support.queries import within_budget
from tests.support.running import House


@pytest.fixture
def house(tenant_id: str) -> House:
    return House(tenant_id)


def test_says_what_it_waits_for_and_where_that_is_decided(house: House) -> None:
    run_id = house.run("gated")
    worker = house.hand()
    asked = worker.ask(worker.take(), park=True)
    text = signed_in(house.world.operator).get(page_of(run_id)).content.decode()
    for said in (
        "WaitingForApproval",
        "A Reviewer or WorkspaceAdmin decides",
        "Waits for approval",
        str(asked.approval_id),
        "sample@1.0.0",
    ):
        assert said in text


def test_an_accepted_run_says_that_it_waits_for_a_worker(house: House) -> None:
    run_id = house.run("single")
    text = signed_in(house.world.requester).get(page_of(run_id)).content.decode()
    assert "waits for a worker" in text
    assert "attempt 1: Waits for a worker" in text, "the row of the step says so as well"
    assert "or for people" not in text, "nothing of that is drawn"


def test_who_may_decide_reads_that_they_may(house: House) -> None:
    run_id, worker = house.run("gated"), house.hand()
    worker.ask(worker.take(), park=True)
    reviewer, requester = (
        signed_in(who).get(page_of(run_id)).content.decode()
        for who in (house.world.reviewer, house.world.requester)
    )
    assert "You decide, or another who may, on publish" in reviewer
    assert "A Reviewer or WorkspaceAdmin decides on publish" in requester
    assert re.search(r'class="fc-button primary"[^>]*>Open the decision<', reviewer)
    assert re.search(r'class="fc-link"[^>]*>Read the question<', requester)


def _seen_by(who: Context, run_id: UUID) -> str:
    return " ".join(signed_in(who).get(page_of(run_id)).content.decode().split())


def test_a_question_that_takes_no_answer_says_so_with_a_plain_link(house: House) -> None:
    run_id, worker = house.run("gated"), house.hand()
    asked = worker.ask(worker.take(), park=True).approval_id
    where = reverse("admin:approvals_approvalrequest_change", args=[asked])
    assert f'<a class="fc-button primary" href="{where}">Open the decision</a>' in _seen_by(
        house.world.reviewer, run_id
    )
    revoke(house, "drain", release_id=house.release)
    for who in (house.world.reviewer, house.world.requester):
        text = _seen_by(who, run_id)
        assert "No answer on publish would be taken as things stand" in text
        assert "The release was taken back" in text
        assert f'<a class="fc-link" href="{where}">Read the question</a>' in text
        assert "You decide" not in text
        assert "Next: the run is Completed" not in text


def test_a_question_whose_time_is_over_is_nobody_s_to_decide(house: House) -> None:
    run_id, worker = house.run("gated"), house.hand()
    let_expire(worker.ask(worker.take(), park=True).approval_id)
    text = _seen_by(house.world.reviewer, run_id)
    assert "Nobody decided on publish in time" in text
    assert "its time is over: the run fails." in text
    assert "You decide" not in text
    assert ">Read the question</a>" in text


def test_who_has_approved_already_reads_that_another_person_decides(house: House) -> None:
    run_id, worker = house.run("narrow"), house.hand()
    house.decide(worker.ask(worker.take(), park=True).approval_id, by=house.world.workspace_admin)
    text = _seen_by(house.world.workspace_admin, run_id)
    assert "Another person decides on publish" in text
    assert "You have approved." in text
    assert ">Read the question</a>" in text, "their answer is given, so nothing calls them to the page"
    assert "Open the decision" not in text
    assert "You decide, or another who may, on publish" in _seen_by(house.world.tenant_admin, run_id)
    assert "WorkspaceAdmin decides" not in text


def test_a_question_for_several_people_says_how_many_are_missing_whoever_reads(house: House) -> None:
    ruled(house, quorum=3)
    run_id, worker = house.run("gated"), house.hand()
    asked = worker.ask(worker.take(), park=True).approval_id
    w = house.world

    def titles() -> list[str]:
        read = (_seen_by(who, run_id) for who in (w.requester, w.workspace_admin, w.reviewer))
        return [re.findall(r"<h3>([^<]*decides?[^<]*)</h3>", text)[0] for text in read]

    roles = "Reviewer or WorkspaceAdmin"
    of_three = "3 people decide on publish, and you may be one of them"
    assert titles() == [f"3 people decide on publish, each of them {roles}", of_three, of_three]
    house.decide(asked, by=w.reviewer)
    assert titles() == [
        f"2 more people decide on publish, each of them {roles}",
        "2 more people decide on publish, and you may be one of them",
        "2 other people decide on publish",
    ]
    house.decide(asked, by=w.reviewer2)
    assert titles() == [
        f"Another {roles} decides on publish",
        "You decide, or another who may, on publish",
        "Another person decides on publish",
    ]


def test_a_question_that_no_role_may_answer_says_that_nobody_can_and_what_helps(house: House) -> None:
    ruled(house, roles=["Reviewer"])
    run_id, worker = house.run("narrow"), house.hand()
    asked = worker.ask(worker.take(), park=True).approval_id
    where = reverse("admin:approvals_approvalrequest_change", args=[asked])
    for who in (house.world.reviewer, house.world.requester, house.world.platform_admin):
        text = _seen_by(who, run_id)
        assert "<h3>Nobody can decide on publish</h3>" in text
        assert "Unless a PlatformAdmin breaks the glass" in text
        assert f'<a class="fc-link" href="{where}">Read the question</a>' in text
        assert "Next: " not in text
        page = " ".join(signed_in(who).get(where).content.decode().split())
        assert "No member can decide, whoever joins." in page
        assert "add a reviewer" not in page, "nobody whom one could add would be asked"
        assert "no member can approve it, whoever joins." in page
        assert "no role in common (rule 1" in page
        for many in ("people, each", "more needed", "different people"):
            assert many not in page, "nor does it call for a number of them"
    [view] = house.pending(run_id)
    signed = {"version": view.version, "proposal_hash": view.proposal_hash, "reason": "the house burns"}
    decide_approval(
        house.world.platform_admin, approval_id=asked, decision="approve", break_glass=True, **signed
    )
    assert house.state(run_id) == "Running", "what the page says helps does help"


def test_questions_alike_are_judged_once(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id, worker = house.run("gates"), house.hand()
    for work in worker.poll():
        worker.acquire(work)
        worker.ask(work, park=True)
    judged: list[object] = []

    def judge(ctx: Context, view: ApprovalView) -> Right:
        judged.append(view)
        return right_to_decide(ctx, view)

    monkeypatch.setattr(waits, "right_to_decide", judge)
    assert _seen_by(house.world.reviewer, run_id).count("You decide, or another who may,") == 2
    assert len(judged) == 1


def _voted(house: House, workflow: str, by: Context) -> UUID:
    """A run all of whose questions need two people, each with the yes of one of them."""
    ruled(house, quorum=2)
    run_id, worker = house.run(workflow), house.hand(slots=9)
    for work in worker.poll():
        worker.acquire(work)
        house.decide(worker.ask(work, park=True).approval_id, by=by)
    return run_id


@pytest.mark.parametrize(("workflow", "questions"), [("gated", 1), ("five", 5)])
def test_votes_on_many_questions_ask_as_little_as_one_on_one(
    house: House, workflow: str, questions: int
) -> None:
    run_id = _voted(house, workflow, house.world.reviewer)
    client = signed_in(house.world.reviewer)
    client.get(page_of(run_id))
    with within_budget("console run, with votes"):
        text = client.get(page_of(run_id)).content.decode()
    assert text.count("You have approved.") == questions


def test_steps_that_wait_for_the_same_are_told_as_one(house: House) -> None:
    run_id = house.run("modules")
    worker = house.hand()
    worker.report(worker.take(), output={"modules": list(range(5)), "severity": "low"})
    text = signed_in(house.world.operator).get(page_of(run_id)).content.decode()
    assert "module[0], module[1], module[2] and 2 more" in text
    assert "Next: end." in text


def test_what_comes_next_of_a_step_that_has_to_ask_is_its_question(house: House) -> None:
    run_id = house.run("gated")
    client, worker = signed_in(house.world.operator), house.hand()
    assert "Next: publish asks before anything is done." in client.get(page_of(run_id)).content.decode()
    asked = worker.ask(worker.take(), park=True)
    assert "Next: the run is Completed, with its output." in client.get(page_of(run_id)).content.decode()
    house.decide(asked.approval_id, "request_changes")
    text = client.get(page_of(run_id)).content.decode()
    assert "Next: publish asks before anything is done." in text
    assert "As soon as that changes, it starts" not in text, "it has begun"


def test_a_long_reason_without_a_blank_is_cut_and_not_left_out() -> None:
    key = UUID(int=2**127 + 7)
    told = with_short_ids(f"{key}/" + "a" * 200, 40)
    assert f">…{str(key)[-8:]}</span>/aaa" in told
    assert "aaa…</span>" in told
    assert f'title="{key}/aaa' in told


def test_what_was_due_and_is_not_done_yet_is_told_as_past(house: House) -> None:
    offered, run_id = house.run("single"), house.run("single")
    worker = house.hand("late", slots=2)
    work = next(each for each in worker.poll() if each.run_id == run_id)
    worker.acquire(work)
    cancel_run(house.world.operator, run_id=run_id, reason="too long")
    leases = signed_in(house.world.operator).get(reverse("admin:runs_lease_changelist"))
    assert "Overdue since" not in leases.content.decode()
    later = datetime.now(UTC) + timedelta(hours=1)
    with reading(house.system):
        [stops] = waits.waits(house.world.operator, read(Run.objects.get(pk=run_id)), later)
        [waiting] = waits.waits(house.world.operator, read(Run.objects.get(pk=offered)), later)
        [row] = Lease.objects.filter(run_id=run_id)
    assert (stops.title, "becomes Uncertain." in stops.detail) == ("late did not stop in time", True)
    assert "it is waited for no longer" not in stops.detail
    assert "has not taken it up; the offer ended at" in waiting.detail
    assert waiting.detail.endswith("it is offered to another once that is taken back.")
    row.at = later  # type: ignore[attr-defined]
    assert "Overdue since" in site._registry[Lease].then(row)  # type: ignore[attr-defined]
