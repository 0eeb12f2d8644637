"""The reference worker: one outcome, whatever happens."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from runs.worker.runtime import WorkerRuntime
from runs.worker.wire import digest
from tests.worker.surface import Surface, problem

pytestmark = pytest.mark.slow

Start = Callable[..., WorkerRuntime]
WAITS = "def run(context):\n    while True:\n        context.check()\n"
DECISION = {"approvalId": "p1", "decision": "approve", "proposalHash": digest({"n": 1}), "reason": ""}


def publish(surface: Surface, code: str) -> None:
    surface.publish({"skills/work.py": code})


def outcome(surface: Surface) -> dict[str, Any]:
    (told,) = surface.wait_for("/outcome")
    return dict(told)


def test_works_and_reports_once(surface: Surface, started: Start) -> None:
    publish(
        surface,
        "def run(context):\n"
        "    with context.tool('brew') as call:\n"
        "        said = call.run(['echo', context.input['word']]).stdout.decode().strip()\n"
        "    return {'said': said, 'before': context.predecessors['before']['n']}\n",
    )
    surface.offer()
    started()
    told = outcome(surface)
    assert (told["outcome"], told["output"]) == ("Succeeded", {"said": "tea", "before": 1})
    (receipt,) = told["receipts"]
    assert (receipt["kind"], receipt["provider"], receipt["name"]) == ("tool", "factory-tools", "brew")
    assert receipt["quantities"]["calls"] == 1
    assert receipt["quantities"]["seconds"] >= 0
    time.sleep(0.2)
    assert len(surface.got("/outcome")) == 1


def test_an_offer_that_is_told_twice_is_worked_once(surface: Surface, started: Start) -> None:
    publish(surface, "import time\n\n\ndef run(context):\n    time.sleep(0.4)\n    return {}\n")
    surface.offer()
    surface.offers.append(dict(surface.offers[0]))
    started()
    surface.wait_for("/outcome")
    time.sleep(0.3)
    assert len(surface.got("/outcome")) == 1


def test_renews_at_a_third_of_what_remains(surface: Surface, started: Start) -> None:
    # The Date header has whole seconds, so that the remaining time is seen up to a second too long.
    publish(surface, "import time\n\n\ndef run(context):\n    time.sleep(2.5)\n    return {}\n")
    surface.ttl = 2.0
    surface.offer()
    started()
    surface.wait_for("/outcome")
    assert 2 <= len(surface.got("/lease")) <= 6


def test_stops_when_the_run_is_cancelled(surface: Surface, started: Start) -> None:
    publish(surface, WAITS)
    surface.ttl = 1.0
    surface.offer()
    started()
    surface.wait_for("/lease")
    surface.lease = lambda: surface.granted(cancel=True)
    told = outcome(surface)
    assert (told["outcome"], told["failureClass"]) == ("Cancelled", "cancellation")


def test_gives_up_when_the_time_of_the_step_is_over(surface: Surface, started: Start) -> None:
    publish(surface, WAITS)
    surface.ttl = 1.0
    surface.offer()
    started()
    surface.wait_for("/lease")
    surface.lease = lambda: surface.granted(stop="timed-out")
    told = outcome(surface)
    assert (told["outcome"], told["failureClass"]) == ("Failed", "transient")
    assert told["reason"] == "the time of the step is over"


def test_a_lease_that_moves_no_more_is_not_renewed_in_haste(surface: Surface, started: Start) -> None:
    publish(surface, "import time\n\n\ndef run(context):\n    time.sleep(3)\n    return {}\n")
    surface.ttl = 1.0
    surface.offer()
    started()
    surface.wait_for("/lease")
    surface.ttl = -1.0
    surface.lease = lambda: surface.granted(stop="timed-out")
    assert outcome(surface)["outcome"] == "Succeeded"
    assert 2 <= len(surface.got("/lease")) <= 4


def test_ends_the_programs_of_a_cancelled_attempt(surface: Surface, started: Start) -> None:
    publish(
        surface,
        "def run(context):\n    with context.tool('sleep') as call:\n        call.run(['sleep', '600'])\n",
    )
    surface.ttl = 1.0
    surface.offer()
    started()
    surface.wait_for("/lease")
    surface.lease = lambda: surface.granted(cancel=True)
    assert outcome(surface)["outcome"] == "Cancelled"


def test_reports_nothing_once_its_lease_is_lost(surface: Surface, started: Start) -> None:
    publish(surface, WAITS)
    surface.ttl = 1.0
    surface.offer()
    started()
    surface.wait_for("/lease")
    surface.lease = lambda: problem(409, "stale-fencing-token")
    surface.wait_for("/lease", 2)
    time.sleep(0.5)
    assert surface.got("/outcome") == []


@pytest.mark.parametrize(
    ("code", "failure_class"),
    [
        ("raise context.fail('validation', 'not tea')", "validation"),
        ("raise OSError('disk')", "transient"),
        ("raise KeyError('x')", "permanent"),
        ("raise OSError('a\\0b\\ud800')", "transient"),
        ("return {'x': float('nan')}", "validation"),
        ("return 'x' * 300_000", "validation"),
        ("import nothing_like_this", "permanent"),
    ],
)
def test_a_failure_has_a_class(surface: Surface, started: Start, code: str, failure_class: str) -> None:
    publish(surface, f"def run(context):\n    {code}\n")
    surface.offer()
    started()
    told = outcome(surface)
    assert (told["outcome"], told["failureClass"]) == ("Failed", failure_class)


CORRECTED = """def run(context):
    if len(context.feedback) < 2:
        raise context.fail("validation", f"wrong {len(context.feedback)}")
    return {"item": context.item, "index": context.index, "said": list(context.feedback)}
"""


@pytest.mark.requirement("STP-11", "WFE-11", "FLR-06", "ARC-05")
@pytest.mark.parametrize(("limit", "ended"), [(0, "Failed"), (1, "Failed"), (2, "Succeeded")])
def test_corrects_what_a_validator_refuses_up_to_the_limit(
    surface: Surface, started: Start, limit: int, ended: str
) -> None:
    publish(surface, CORRECTED)
    given = {"run": {}, "predecessors": {}, "item": {"n": 1}, "index": 3, "correctionLimit": limit}
    surface.offer(input=given)
    started()
    told = outcome(surface)
    assert told["outcome"] == ended
    if ended == "Succeeded":
        assert told["output"] == {"item": {"n": 1}, "index": 3, "said": ["wrong 0", "wrong 1"]}
    else:
        assert (told["failureClass"], told["reason"]) == ("validation", f"wrong {limit}")


def test_parks_with_its_receipts_sent_and_no_outcome(surface: Surface, started: Start) -> None:
    publish(
        surface,
        "def run(context):\n"
        "    with context.tool('draft'):\n"
        "        pass\n"
        "    context.propose('shared-write', {'n': 1}, 'do it', checkpoint={'kept': True})\n",
    )
    surface.approval = (201, {"effect": "require-approval", "approvalId": "p1", "version": 1})
    surface.offer()
    started()
    (asked,) = surface.wait_for("/approvals")
    assert asked["park"] == {"checkpoint": {"kept": True}}
    assert [path.rsplit("/", 1)[-1] for _, path, *_ in surface.calls if "/attempts/" in path] == [
        "lease",
        "receipts",
        "approvals",
    ]
    time.sleep(0.3)
    assert surface.got("/outcome") == []


def test_comes_back_with_the_decision_and_acts_under_an_authorization(
    surface: Surface, started: Start
) -> None:
    publish(
        surface,
        "def run(context):\n"
        "    proposal = {'n': context.checkpoint['n']}\n"
        "    assert context.authorize(context.decision, proposal)\n"
        "    context.effect('done', context.decision, {'commit': 'c1'})\n"
        "    return {}\n",
    )
    surface.offer(checkpoint={"n": 1}, decision=DECISION, fencingToken=9)
    started()
    told = outcome(surface)
    (receipt,) = told["receipts"]
    assert surface.got("/authorizations")[0]["proposalHash"] == digest({"n": 1})
    assert (receipt["kind"], receipt["approvalId"], receipt["proposalHash"]) == (
        "effect",
        "p1",
        digest({"n": 1}),
    )
    assert told["fencingToken"] == 9


def test_will_not_act_on_anything_but_what_was_approved(surface: Surface, started: Start) -> None:
    publish(surface, "def run(context):\n    context.authorize(context.decision, {'n': 2})\n")
    surface.offer(decision=DECISION)
    started()
    assert outcome(surface)["failureClass"] == "policy-denied"
    assert surface.got("/authorizations") == []


def test_an_error_after_the_authorization_is_uncertain(surface: Surface, started: Start) -> None:
    publish(
        surface,
        "def run(context):\n    context.authorize(context.decision, {'n': 1})\n    raise OSError('disk')\n",
    )
    surface.offer(decision=DECISION)
    started()
    told = outcome(surface)
    assert (told["outcome"], told["failureClass"]) == ("Uncertain", "uncertain")


def test_an_expired_approval_is_known_before_acting(surface: Surface, started: Start) -> None:
    publish(surface, "def run(context):\n    return {'ok': context.authorize(context.decision, {'n': 1})}\n")
    surface.faults["authorizations"] = [lambda: problem(410, "approval-expired")]
    surface.offer(decision=DECISION)
    started()
    assert outcome(surface)["output"] == {"ok": False}


def test_waits_in_place_when_it_does_not_park(surface: Surface, started: Start, monkeypatch: Any) -> None:
    monkeypatch.setattr("runs.worker.context.ASK_AGAIN", 0.05)
    publish(
        surface,
        "def run(context):\n"
        "    found = context.propose('shared-write', {'n': 1}, 'do it', park=False)\n"
        "    return {'word': found.decision}\n",
    )
    surface.approval = (201, {"effect": "require-approval", "approvalId": "p1", "version": 1})
    surface.offer()
    started()
    surface.wait_for("/approvals", 2)
    surface.approval = (200, {**surface.approval[1], "decision": DECISION})
    assert outcome(surface)["output"] == {"word": "approve"}
    assert all("park" not in body for body in surface.got("/approvals"))


def test_finishes_what_is_in_hand_when_it_drains(surface: Surface, started: Start) -> None:
    publish(surface, "import time\n\n\ndef run(context):\n    time.sleep(0.5)\n    return {}\n")
    surface.offer()
    worker = started()
    surface.wait_for("/lease")
    worker.stop()
    assert outcome(surface)["outcome"] == "Succeeded"
    surface.wait_for("/drain")


def test_hands_back_what_does_not_end(surface: Surface, started: Start) -> None:
    publish(surface, WAITS)
    surface.offer()
    worker = started(drain_seconds=0.2)
    surface.wait_for("/lease")
    worker.stop()
    told = outcome(surface)
    assert (told["outcome"], told["failureClass"]) == ("Failed", "transient")


def test_stops_when_a_younger_process_has_its_name(surface: Surface, started: Start) -> None:
    surface.faults["poll"] = [lambda: problem(409, "worker-superseded")]
    started()
    surface.wait_for("/poll")
    time.sleep(0.4)
    assert len(surface.got("/poll")) == 1
    assert surface.got("/drain") == []


def test_works_on_after_an_outage(surface: Surface, started: Start) -> None:
    publish(surface, "def run(context):\n    return {}\n")
    surface.faults["w1"] = [lambda: problem(503, "busy")]
    surface.faults["poll"] = [lambda: problem(503, "busy"), lambda: (0, None)]
    surface.faults["outcome"] = [lambda: (0, None)]
    surface.offer()
    started()
    first, second = surface.wait_for("/outcome", 2)
    assert first == second
