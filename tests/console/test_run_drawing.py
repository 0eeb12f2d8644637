"""The run's graph and timeline: every node once, in order, with words for every sign."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from runs.admin.detail.charts.graph import HEIGHT, WIDTH, NodeLabel, draw_graph
from runs.admin.detail.charts.timeline import Span, draw_timeline
from tests.console.test_pages import signed_in
from tests.console.test_run_page import page_of
from tests.support.api import Api
from tests.support.running import House


@pytest.fixture
def house(tenant_id: str) -> House:
    return House(tenant_id)


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


def test_draws_every_node_once_and_after_what_it_depends_on() -> None:
    nodes = [
        {"key": "a"},
        {"key": "b", "dependsOn": ["a"]},
        {"key": "c", "dependsOn": ["a"]},
        {"key": "d", "dependsOn": ["b", "c"]},
    ]
    graph = draw_graph(nodes, {"a": NodeLabel("Succeeded")})
    places = {box.key: box for box in graph.boxes}
    assert [places[k].x for k in "abcd"] == sorted(places[k].x for k in "abcd")
    assert places["b"].x == places["c"].x
    assert places["b"].y != places["c"].y
    assert len(graph.arrows) == 4
    assert places["a"].state == "Succeeded"
    assert places["d"].state == "Not begun"


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


def test_a_question_that_is_open_has_no_end_and_the_legend_speaks_of_now_only_then() -> None:
    start = datetime(2026, 11, 30, 9, 31, 2, tzinfo=UTC)
    over = Span("question", "Approved", start, start + timedelta(minutes=1), "question")
    asked = Span("question", "Pending", start + timedelta(minutes=2), None, "question")
    until_now = "a question to people, from asked to closed, or until now"
    for spans, ends, words, sign_goes_on in (
        ([over], [False], "a question to people, from asked to closed", False),
        ([over, asked], [False, True], until_now, False),
        ([asked], [True], until_now, True),
    ):
        drawn = draw_timeline([("ask", "Waits", spans)], start, start + timedelta(minutes=4))
        assert [bar.goes_on for bar in drawn.rows[0].bars] == ends
        assert [(sign.words, sign.goes_on) for sign in drawn.signs] == [(words, sign_goes_on)]


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
