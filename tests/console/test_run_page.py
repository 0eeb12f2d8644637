"""The run's page: it says where the run stands, and its acts are the commands."""

import re
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.urls import reverse

from approvals.selectors import ApprovalView, Right, right_to_decide
from factory.admin.show import brief
from factory.admin.site import site
from factory.context import Context
from factory.tenancy import reading
from factory.webhooks.commands import create_webhook
from factory.webhooks.signing import new_secret
from runs.admin import waits
from runs.admin.drawing import HEIGHT, WIDTH, Told, draw_graph
from runs.admin.facts import read
from runs.admin.lanes import Span, draw_timeline
from runs.admin.lists import with_short_ids
from runs.commands import cancel_run
from runs.models import Lease, Run
from tests.console.test_pages import signed_in
from tests.support.acts import revoke
from tests.support.api import Api
from tests.support.approvals import let_expire
from tests.support.evidence import audits
from tests.support.running import House, effect, receipt
from tests.support.world import second_world


@pytest.fixture
def house(tenant_id: str) -> House:
    return House(tenant_id)


def page_of(run_id: object) -> str:
    return reverse("admin:runs_run_change", args=[run_id])


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


def test_the_decision_page_tells_the_run_so_far(house: House) -> None:
    house.run("gated")
    worker = house.hand()
    asked = worker.ask(worker.take(), park=True)
    url = reverse("admin:approvals_approvalrequest_change", args=[asked.approval_id])
    text = signed_in(house.world.reviewer).get(url).content.decode()
    for said in ("The run so far: gated", "was accepted and pinned", "0.00 of 5.00 USD"):
        assert said in text


def test_an_accepted_run_says_that_it_waits_for_a_worker(house: House) -> None:
    run_id = house.run("single")
    text = signed_in(house.world.requester).get(page_of(run_id)).content.decode()
    assert "waits for a worker" in text
    assert "attempt 1: Waits for a worker" in text, "the row of the step says so as well"
    assert "or for people" not in text, "nothing of that is drawn"


@pytest.mark.parametrize(("kind", "again"), [("single", False), ("gated", True)])
def test_a_doubt_claims_no_more_than_is_known(house: House, kind: str, again: bool) -> None:
    """Who reports a doubt, and whoever was restored, has not fallen silent, and may have asked nobody."""
    run_id = house.run(kind)
    worker = house.hand()
    worker.report(worker.take(), "Uncertain", "uncertain", reason="the line was cut")
    text = signed_in(house.world.operator).get(page_of(run_id)).content.decode()
    assert "An Operator settles" in text
    assert "fell silent" not in text
    assert ("asks for approval again" in text) is again
    assert "Next depends on what the Operator says" in text
    assert ("it is asked for again" if again else "it is tried again") in text
    assert "the run is Completed" not in text


@pytest.mark.requirement("ATT-05")
def test_who_settled_a_doubt_how_and_by_what_evidence_stands_at_the_attempt(house: House) -> None:
    run_id, worker = house.run("gated"), house.hand()
    worker.report(worker.take(), "Uncertain", "uncertain", reason="the line was cut")
    step = house.steps(run_id)["publish"]
    operator = signed_in(house.world.operator)
    url = reverse("admin:runs_settle", args=[run_id, step.id])
    found = "<b>The branch</b> is there\u202e, I looked."
    sent = {"version": step.version, "resolution": "effect-happened", "evidence": found}
    page = operator.post(url, sent, follow=True).content.decode()
    assert f"Settled by {house.world.operator.actor.subject}: the effect happened" in page
    assert "&lt;b&gt;The branch&lt;/b&gt; is there⟨U+202E⟩, I looked." in page
    without = signed_in(house.world.observer).get(page_of(run_id)).content.decode()
    assert "the effect happened" in without
    assert "The branch" not in without
    assert "Its evidence is for holders of the payloads grant" in without


def test_the_list_cuts_a_reason_at_a_word_its_file_tells_all_and_nothing_used_costs_nothing(
    house: House,
) -> None:
    client, reason = signed_in(house.world.operator), " ".join(["<i>because</i>"] * 20)
    cancel_run(house.world.operator, run_id=house.run("single"), reason=reason)
    runs = reverse("admin:runs_run_changelist")
    page = client.get(runs).content.decode()
    assert "&lt;i&gt;because&lt;/i&gt;…</span>" in page
    assert "not known" not in page
    file = b"".join(client.get(f"{runs}?format=csv").streaming_content).decode()
    assert f",{reason},0.00 USD" in file
    worker, unknown = house.hand(), receipt(kind="model", provider="nobody", quantities=None)
    house.run("single")
    worker.report(worker.take(), output={}, receipts=[unknown])
    assert "not known" in client.get(runs).content.decode()


def test_a_violation_looks_the_same_in_the_list_as_on_the_first_page(house: House) -> None:
    house.run("gated")
    worker = house.hand()
    worker.report(worker.take(), output={"said": "done"}, receipts=[effect(None)])
    client, steps = signed_in(house.world.operator), reverse("admin:runs_step_changelist")
    page = client.get(steps).content.decode()
    assert '<span class="fc-badge bad"><span aria-hidden="true">✕</span>Violation</span>' in page
    assert re.search(r'title="The effect [0-9a-f-]{36} happened[^"]*">The effect .{0,30}…[0-9a-f]{8}<', page)
    offered = re.findall(r'<option value="([^"]*)"', page.split('name="attention"')[1].split("</select>")[0])
    assert offered == ["", "uncertain", "violation", "late-effect"]
    assert "It acted without" in client.get(f"{steps}?attention=violation").content.decode()
    assert "It acted without" not in client.get(f"{steps}?attention=uncertain").content.decode()


@pytest.mark.requirement("WFE-03")
def test_shows_fan_outs_skipped_branches_and_people(house: House) -> None:
    many, branch, asked = house.run("modules"), house.run("branches"), house.run("asked")
    worker = house.hand(slots=9)
    outputs = {"modules": [1, 2], "severity": "low"}
    for work in worker.poll():
        worker.acquire(work)
        worker.report(work, output=outputs)
    [one, *_] = [work for work in worker.poll() if work.snapshot["stepKey"] == "module[0]"]
    worker.acquire(one)
    worker.report(one, output=1)
    client = signed_in(house.world.operator)
    said = {run: client.get(page_of(run)).content.decode() for run in (many, branch, asked)}
    for words in ("1 of 2 has succeeded", "module[1]", "for each", "2 of 4 steps", "1 of 2 done"):
        assert words in said[many]
    for words in ("Its condition is false.", "All that it depends on was skipped.", "2 were skipped"):
        assert words in said[branch]
    for words in (
        "a person answers",
        "Waits for approval",
        "A Reviewer or WorkspaceAdmin decides",
        "conditional",
    ):
        assert words in said[asked]
    told = Api.as_(house.world.requester).get(f"/factory/runs/{many}/graph").json()
    module = next(node for node in told["nodes"] if node["key"] == "module")
    assert (module["state"], module["forEach"]) == ("Running", "steps.scan.modules")
    assert [i["state"] for i in module["instances"]] == ["Succeeded", "Dispatched"]


@pytest.mark.requirement("RUN-14", "RUN-22")
def test_cancels_with_a_reason_and_keeps_who_asked(house: House) -> None:
    run_id = house.run("single")
    client = signed_in(house.world.operator)
    url = reverse("admin:runs_cancel", args=[run_id])
    opened = client.get(url)
    assert (opened.status_code, opened["Allow"]) == (405, "POST")
    assert "only when its button is pressed" in opened.content.decode()
    empty = client.post(url, {"reason": " "}, follow=True)
    assert "needs a reason" in empty.content.decode()
    assert house.state(run_id) == "Accepted"
    told = client.post(url, {"reason": "<b>wrong branch</b>"}, follow=True).content.decode()
    assert house.state(run_id) == "Cancelled"
    assert "&lt;b&gt;wrong branch&lt;/b&gt;" in told
    assert "<b>wrong branch</b>" not in told
    assert {a.channel for a in audits(house.system, "CancelRun")} == {"admin"}


def test_who_may_not_cancel_gets_no_button_and_no_way(house: House) -> None:
    run_id = house.run("single")
    client = signed_in(house.world.reviewer)
    assert "Cancel the run" not in client.get(page_of(run_id)).content.decode()
    client.post(reverse("admin:runs_cancel", args=[run_id]), {"reason": "no"}, follow=True)
    assert house.state(run_id) == "Accepted"


@pytest.mark.requirement("IDN-15")
def test_another_tenants_run_does_not_exist(house: House, tenant_id: str) -> None:
    run_id = house.run("single")
    client = signed_in(second_world(tenant_id).operator)
    assert client.get(page_of(run_id)).status_code == 404
    assert client.post(reverse("admin:runs_cancel", args=[run_id]), {"reason": "mine"}).status_code == 404
    assert house.state(run_id) == "Accepted"


def test_output_is_for_holders_of_the_payloads_grant(house: House) -> None:
    run_id = house.run("single")
    worker = house.hand()
    worker.report(worker.take(), output={"found": "the-secret-marker"})
    assert "the-secret-marker" in signed_in(house.world.operator).get(page_of(run_id)).content.decode()
    assert "the-secret-marker" not in signed_in(house.world.reviewer).get(page_of(run_id)).content.decode()


def test_a_step_that_needs_an_operator_keeps_its_output_from_those_without_the_grant(house: House) -> None:
    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    worker.report(work, output={"said": "the words of the output"}, receipts=[effect(None)])
    step = next(step for step in house.steps(run_id).values() if step.attention)
    page = signed_in(house.world.operator).get(reverse("admin:runs_step_change", args=[step.id]))
    text = page.content.decode()
    assert page.status_code == 200
    assert "It acted without an authorization" in text
    assert "<dt>Output</dt>" not in text


def test_draws_every_node_once_and_after_what_it_depends_on() -> None:
    nodes = [
        {"key": "a"},
        {"key": "b", "dependsOn": ["a"]},
        {"key": "c", "dependsOn": ["a"]},
        {"key": "d", "dependsOn": ["b", "c"]},
    ]
    graph = draw_graph(nodes, {"a": Told("Succeeded")})
    places = {box.key: box for box in graph.boxes}
    assert [places[k].x for k in "abcd"] == sorted(places[k].x for k in "abcd")
    assert places["b"].x == places["c"].x
    assert places["b"].y != places["c"].y
    assert len(graph.arrows) == 4
    assert places["a"].state == "Succeeded"
    assert places["d"].state == "Not begun"


def test_a_question_shows_what_was_done_before_it_and_nothing_where_that_is_nothing(tenant_id: str) -> None:
    house = House(tenant_id)
    first, worker = house.run("asked"), house.hand()
    after = house.run("twice")
    worker.report(worker.take(), output={"found": "<b>two</b> leaks"})
    reviewer = signed_in(house.world.reviewer)

    def page(run_id: UUID) -> str:
        [request, *_] = house.pending(run_id)
        url = reverse("admin:approvals_approvalrequest_change", args=[request.id])
        return str(reviewer.get(url).content.decode())

    alone, later = page(first), page(after)
    assert "ask?" in alone
    assert "predecessors" not in alone
    assert "Predecessors" not in alone
    for words in ("What was done before", "scan", "&lt;b&gt;two&lt;/b&gt; leaks"):
        assert words in later
    assert "predecessors" not in later


def test_no_arrow_runs_over_a_box() -> None:
    nodes = [
        {"key": "a"},
        *({"key": f"b{n}", "dependsOn": ["a"]} for n in range(3)),
        {"key": "c", "dependsOn": ["b1"]},
        {"key": "d", "dependsOn": ["a", "c", "b0", "b2"]},
    ]
    graph = draw_graph(nodes, {})
    assert len(graph.arrows) == 8
    for arrow in graph.arrows:
        for x, y in points(arrow.path):
            inside = [b.key for b in graph.boxes if b.x < x < b.x + WIDTH and b.y < y < b.y + HEIGHT]
            assert inside == [], arrow.path
            assert 0 < y < graph.height, arrow.path


def points(path: str) -> list[tuple[float, float]]:
    """Points along the straight parts of a path, close enough to one another to meet every box."""
    found: list[tuple[float, float]] = []
    x = y = 0.0
    for command, numbers in re.findall(r"([MHVq])([^MHVq]*)", path):
        values = [float(number) for number in numbers.split()]
        if command == "q":
            x1, y1 = x + values[2], y + values[3]
        else:
            x1, y1 = values[0] if command in "MH" else x, values[-1] if command in "MV" else y
        if command in "HV":
            found += [(x + (x1 - x) * n / 40, y + (y1 - y) * n / 40) for n in range(41)]
        x, y = x1, y1
    return found


def test_the_axis_has_round_times_and_every_sign_is_explained() -> None:
    start = datetime(2026, 11, 30, 9, 31, 2, tzinfo=UTC)
    minutes = timedelta(minutes=1)
    spans = [
        Span("attempt 1", "Running", start, start + 3 * minutes),
        Span("attempt 1", "Parked", start + 3 * minutes, None, "parked"),
        Span("question", "Pending", start + 3 * minutes, None, "question"),
    ]
    drawn = draw_timeline([("commit", "Waits for approval", spans)], start, start + 60 * minutes)
    told = ["09:31:02", "09:50", "10:00", "10:10", "10:31:02"]
    assert [words for _, words in drawn.marks] == told, "begin and end, and what has room between them"
    assert [(sign.kind, sign.tone) for sign in drawn.signs] == [
        ("bar", "busy"),
        ("parked", "wait"),
        ("question", "wait"),
    ]
    [row] = drawn.rows
    assert [(bar.left, bar.width) for bar in row.bars] == [(0.0, 5.0), (5.0, 95.0), (5.0, 95.0)]
    assert row.bars[0].words == "attempt 1: Running, 09:31:02 to 09:34:02"


def test_a_legend_says_no_more_than_what_is_drawn() -> None:
    start = datetime(2026, 11, 30, 9, 31, 2, tzinfo=UTC)
    end = start + timedelta(minutes=4)
    states = ["Waits for a worker", "Waiting", "Cancelling", "TimedOut"]
    drawn = draw_timeline([(s, s, [Span("run", s, start, None)]) for s in states], start, end)
    told = [(sign.tone, sign.words) for sign in drawn.signs]
    assert told == [("wait", "waiting for a worker or stopping"), ("bad", "timed out")]


def test_what_was_short_is_not_told_as_nothing() -> None:
    told = [brief(seconds) for seconds in (0, 0.004, 0.31, 9.94, 12.7)]
    assert told == ["0.0 s", "under 0.1 s", "0.3 s", "9.9 s", "12 s"]


def test_a_short_run_has_times_too_and_no_bar_passes_the_end_of_its_axis() -> None:
    start = datetime(2026, 11, 30, 9, 31, 2, 120_000, tzinfo=UTC)
    end = start + timedelta(milliseconds=230)
    last = Span("run", "Cancelling", end - timedelta(microseconds=10), end)
    drawn = draw_timeline([("run", "Cancelled", [last])], start, end)
    assert drawn.marks == ((0, "09:31:02.120"), (100, "09:31:02.350"))
    [bar] = drawn.rows[0].bars
    assert bar.left + bar.width == 100


def test_time_in_which_nobody_works_at_a_run_is_drawn_as_waiting(house: House) -> None:
    run_id, worker = house.run("single"), house.hand()
    client = signed_in(house.world.requester)
    [work] = worker.poll()
    offered = client.get(page_of(run_id)).content.decode()
    assert "Waits for a worker" in offered
    assert '<span class="fc-soft">1 step waits for a worker</span>' in offered
    assert "look waits for a worker" in offered
    assert "fc-span bar busy" not in offered, "nobody has begun"
    worker.acquire(work)
    held = client.get(page_of(run_id)).content.decode()
    assert "Waits for a worker</span>" not in held
    assert "fc-span bar busy" in held
    worker.report(work, output=1)
    over = client.get(page_of(run_id)).content.decode()
    for said in (
        "Its one step has succeeded.",
        "Was set aside",
        "It asked nobody.",
        "Run of single <code",
        'Steps and attempts <span class="fc-soft">1',
    ):
        assert said in over


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
        assert "The release was taken back: nothing may be done with it any more." in text
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
    assert "You decide, or another who may, on publish" in _seen_by(house.world.tenant_admin, run_id)
    assert "WorkspaceAdmin decides" not in text


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


def test_a_run_that_is_stopping_is_not_offered_to_be_cancelled_again(house: House) -> None:
    run_id, worker = house.run("single"), house.hand()
    worker.take()
    cancel_run(house.world.operator, run_id=run_id, reason="no more")
    client = signed_in(house.world.operator)
    stopping = client.get(page_of(run_id)).content.decode()
    assert "Cancel this run" not in stopping
    assert "it fails" not in stopping, "its deadline ends nothing any more"
    leases = client.get(reverse("admin:runs_lease_changelist")).content.decode()
    assert "the run is Cancelled once nobody holds any of it" in leases
    assert "workers hold 1, and are offered 0 more" in leases
    runs = reverse("admin:runs_run_changelist")
    chosen = {"action": "cancel_selected", "_selected_action": [str(run_id)], "index": "0"}
    page = client.post(runs, chosen, follow=True).content.decode()
    assert "Cancel 0 of 1 run<" in page
    assert "It was asked to stop before, and is stopping." in page


def test_what_lies_behind_a_run_has_tabs_and_its_chains_are_recomputed(house: House) -> None:
    run_id = house.run("single")
    worker = house.hand()
    worker.report(worker.take(), output={"found": 1}, receipts=[receipt()])
    operator = signed_in(house.world.operator)

    def tab(key: str) -> str:
        return str(operator.get(page_of(run_id), {"tab": key}).content.decode())

    assert "Intact" in tab("journal")
    assert "Submitted" in tab("journal")
    assert "run-control.runs.v1.run-accepted" in tab("events")
    assert "factory-tools/git-log" in tab("usage")
    assert "SubmitRun" in tab("audit")
    assert "Questions to people" in tab("none of them")


def test_where_events_go_is_for_those_who_may_see_the_receivers(house: House) -> None:
    """The address of a receiver often is its password."""
    secret = "https://hooks.example.test/T0/B0/the-secret-part"
    create_webhook(
        house.world.workspace_admin, url=secret, topics=[], consumer="", description="", secret=new_secret()
    )
    at = page_of(house.run("single"))
    admin, observer = (
        signed_in(who).get(at, {"tab": "events"}).content.decode()
        for who in (house.world.workspace_admin, house.world.observer)
    )
    for page in (admin, observer):
        assert "run-control.runs.v1.run-accepted" in page
    assert "the-secret-part" in admin
    assert "the-secret-part" not in observer
    assert "receivers" not in observer.lower()


def test_steps_that_wait_for_the_same_are_told_as_one(house: House) -> None:
    run_id = house.run("modules")
    worker = house.hand()
    worker.report(worker.take(), output={"modules": list(range(5)), "severity": "low"})
    text = signed_in(house.world.operator).get(page_of(run_id)).content.decode()
    assert "module[0], module[1], module[2] and 2 more wait for a worker" in text
    assert "Next: end." in text


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
    row.at = later  # type: ignore[attr-defined]
    assert "Overdue since" in site._registry[Lease].then(row)  # type: ignore[attr-defined]
