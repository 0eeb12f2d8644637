"""The lease is kept and the outcome arrives, whatever is in between, beside or wrong with a receipt."""

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runs.worker.client import WorkerClient
from runs.worker.errors import Unreachable
from runs.worker.receipts import ReceiptBook
from runs.worker.runtime import WorkerOptions, WorkerRuntime
from runs.worker.wire import canonical
from tests.worker.surface import Answer, Surface, problem
from tests.worker.test_process import ROOT, command

pytestmark = pytest.mark.slow

PAGE = b"<html><body>Please sign in to the proxy.</body></html>"
WORKS = """import time


def run(context):
    for _ in range(%d):
        context.check()
        time.sleep(0.1)
    return {'done': True}
"""


def slow() -> Answer | None:
    time.sleep(1.0)
    return None


BAD: dict[str, Callable[[], Answer | None]] = {
    "a page": lambda: (200, PAGE),
    "a page that says no": lambda: (404, PAGE),
    "a page that wants a password": lambda: (403, PAGE),
    "a page that leads elsewhere": lambda: (302, PAGE),
    "JSON of somebody else": lambda: (200, {"status": "ok"}),
    "a list": lambda: (200, []),
    "nothing": lambda: (200, b""),
    "a cut connection": lambda: (0, None),
    "a fault": lambda: problem(500, "broken"),
    "silence": slow,
    "a refusal": lambda: problem(401, "unauthenticated"),
}


def publish(surface: Surface, code: str) -> None:
    surface.publish({"skills/work.py": code})


def told(surface: Surface) -> dict[str, Any]:
    (body,) = surface.wait_for("/outcome", seconds=20)
    return dict(body)


@pytest.mark.parametrize("bad", BAD)
def test_a_lease_is_renewed_through_whatever_answers_in_between(
    surface: Surface, started: Callable[..., WorkerRuntime], bad: str
) -> None:
    """The first renewals meet it; the lease is renewed in time, and nothing disturbs the task."""
    surface.ttl = 6.0
    publish(surface, WORKS % 70)
    surface.offer()
    started()
    surface.wait_for("/lease", 1)
    surface.faults["lease"] = [BAD[bad]] * 2
    assert told(surface)["outcome"] == "Succeeded"
    assert len(surface.got("/lease")) >= 3


@pytest.mark.parametrize("where", ["receipts", "outcome", "poll", "manifest", "w1"])
@pytest.mark.parametrize("bad", ["a page", "a page that says no", "a list", "a cut connection"])
def test_every_other_call_outlives_it_too(
    surface: Surface, started: Callable[..., WorkerRuntime], where: str, bad: str
) -> None:
    if (where, bad) == ("manifest", "a list"):
        pytest.skip("a manifest is any object")
    publish(surface, WORKS % 3)
    surface.offer()
    surface.faults[where] = [BAD[bad]]
    started()
    assert told(surface)["outcome"] == "Succeeded"


def test_a_fault_that_nobody_foresaw_does_not_end_the_renewals(
    surface: Surface, started: Callable[..., WorkerRuntime], monkeypatch: pytest.MonkeyPatch
) -> None:
    surface.ttl = 1.0
    real, faults = WorkerClient.send_receipts, [RuntimeError("changed size"), TypeError("a Path"), OSError()]

    def send(self: WorkerClient, *args: Any, **options: Any) -> None:
        if faults:
            raise faults.pop()
        real(self, *args, **options)

    monkeypatch.setattr(WorkerClient, "send_receipts", send)
    code = """import time


def run(context):
    with context.tool('brew'):
        pass
    time.sleep(3)
    return {}
"""
    publish(surface, code)
    surface.offer()
    started()
    assert told(surface)["outcome"] == "Succeeded"
    assert faults == []
    assert len(surface.got("/lease")) >= 4


def test_a_lost_lease_stops_the_task_after_any_such_fault(
    surface: Surface, started: Callable[..., WorkerRuntime]
) -> None:
    surface.ttl = 3.0
    publish(surface, "def run(context):\n    while True:\n        context.check()\n")
    surface.offer()
    started()
    surface.wait_for("/lease", 1)
    surface.faults["lease"] = [BAD["a page"], lambda: problem(409, "stale-fencing-token")]
    surface.wait_for("/lease", 3, seconds=15)
    time.sleep(0.5)
    assert surface.got("/outcome") == []


def test_a_token_that_is_away_for_a_while_costs_nothing(surface: Surface, tmp_path: Path) -> None:
    """Its file is replaced in the middle of the work: absent, then empty, then another one."""
    token = tmp_path / "token"
    token.write_text("first")
    surface.ttl = 4.0
    publish(surface, WORKS % 50)
    surface.offer()
    client = WorkerClient(surface.url, lambda: token.read_text().strip(), "w1", patience=20.0)
    worker = WorkerRuntime(client, WorkerOptions(cache=tmp_path / "cache", poll_seconds=1))
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    surface.wait_for("/lease", 1)
    token.unlink()
    time.sleep(2.0)
    token.write_text("")
    time.sleep(0.5)
    token.write_text("second")
    assert told(surface)["outcome"] == "Succeeded"
    assert {h["Authorization"] for _, path, _, h in surface.calls if path.endswith("/outcome")} == {
        "Bearer second"
    }
    worker.stop()
    thread.join(15)
    assert not thread.is_alive()
    client.close()


def test_patience_ends_with_a_token_that_stays_away(surface: Surface, tmp_path: Path) -> None:
    client = WorkerClient(surface.url, (tmp_path / "none").read_text, "w1", patience=0.3)
    with pytest.raises(Unreachable, match="the token cannot be read"):
        client.register(["*/*"], 1, "1")


def test_what_cannot_be_sent_costs_a_receipt_its_details_at_most(
    surface: Surface, started: Callable[..., WorkerRuntime]
) -> None:
    publish(
        surface,
        "from pathlib import Path\n\n\n"
        "class Mute:\n    def __str__(self):\n        raise ValueError('no')\n\n\n"
        "def run(context):\n"
        "    for details in ({'at': Path('/tmp/x'), 'n': 1}, {'big': 2**60, 'ratio': float('nan')}, "
        "{'mute': Mute(), 3: {1, }}, 'no mapping'):\n"
        "        with context.tool('brew') as call:\n"
        "            call.details = details\n"
        "    with context.tool('weigh') as call:\n"
        "        call.quantities = {'calls': Path('x')}\n"
        "    return {}\n",
    )
    surface.offer()
    started()
    body = told(surface)
    assert body["outcome"] == "Succeeded"
    receipts = body["receipts"] + [one for call in surface.got("/receipts") for one in call["receipts"]]
    by_name = [one["details"] for one in receipts if one["name"] == "brew"]
    assert by_name == [
        {"at": "/tmp/x", "n": 1},
        {"big": str(2**60), "ratio": "nan"},
        {"mute": "a Mute", "3": "{1}"},
        {"described": "no mapping"},
    ]
    (weighed,) = [one for one in receipts if one["name"] == "weigh"]
    assert weighed["quantities"] is None, "Unknown, and not wrong."
    assert weighed["details"]["quantities"]["calls"] == "x"


def test_a_receipt_is_what_it_was_when_it_was_noted() -> None:
    """Its owner goes on changing its details while they are sent by another thread."""
    details: dict[str, Any] = {"seen": [1], "more": {"a": 1}}
    book = ReceiptBook()
    receipt = book.add("tool", "p", "n", quantities={"calls": 1}, details=details)
    details["seen"].append(2)
    details["more"].clear()
    assert receipt["details"] == {"seen": [1], "more": {"a": 1}}
    loop: dict[str, Any] = {}
    loop["self"] = loop
    canonical(book.add("tool", "p", "n", quantities=None, details=loop)["details"])


def test_an_offer_that_cannot_be_read_keeps_no_other_from_being_worked(
    surface: Surface, started: Callable[..., WorkerRuntime]
) -> None:
    publish(surface, "def run(context):\n    return {}\n")
    surface.offer(fencingToken="none")
    healthy = surface.offer()
    started()
    surface.wait_for("/outcome")
    assert [path for _, path, _, _ in surface.calls if path.endswith("/outcome")] == [
        f"/factory/attempts/{healthy}/outcome"
    ]


def test_it_goes_on_polling_after_a_fault_that_nobody_foresaw(
    surface: Surface, started: Callable[..., WorkerRuntime], monkeypatch: pytest.MonkeyPatch
) -> None:
    real, faults = WorkerClient.poll, [RuntimeError("never seen")]

    def poll(self: WorkerClient, wait: int = 25) -> Any:
        if faults:
            raise faults.pop()
        return real(self, wait)

    monkeypatch.setattr(WorkerClient, "poll", poll)
    publish(surface, "def run(context):\n    return {}\n")
    surface.offer()
    started()
    assert told(surface)["outcome"] == "Succeeded"


def test_who_is_not_taken_back_finishes_what_is_in_hand(surface: Surface, tmp_path: Path) -> None:
    """It is forgotten, asks to be registered again, and is refused for good: its task ends all the same."""
    publish(surface, WORKS % 20)
    surface.offer()
    client = WorkerClient(surface.url, lambda: "token", "w1", patience=2.0)
    worker = WorkerRuntime(client, WorkerOptions(cache=tmp_path / "cache", poll_seconds=1, max_concurrency=2))
    ended: list[int] = []
    thread = threading.Thread(target=lambda: ended.append(worker.run()), daemon=True)
    thread.start()
    surface.wait_for("/lease", 1)
    surface.faults["w1"] = [lambda: problem(403, "forbidden")]
    surface.faults["poll"] = [lambda: problem(404, "not-found")]
    assert told(surface)["outcome"] == "Succeeded"
    thread.join(20)
    assert ended == [1]
    client.close()


@pytest.mark.parametrize("bad", ["a page", "a cut connection", "a fault"])
def test_sigterm_drains_while_everything_answers_badly(surface: Surface, tmp_path: Path, bad: str) -> None:
    token = tmp_path / "token"
    token.write_text("a.b.c")
    publish(surface, WORKS % 30)
    surface.offer()
    process = subprocess.Popen(
        command(surface.url, token),
        cwd=ROOT,
        env={**os.environ, "HOME": str(tmp_path)},
        stderr=subprocess.DEVNULL,
    )
    try:
        surface.wait_for("/lease", 1)
        surface.faults["poll"] = [BAD[bad]] * 50
        surface.faults["lease"] = [BAD[bad]] * 2
        token.unlink()
        time.sleep(0.5)
        token.write_text("a.b.c")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert told(surface)["outcome"] == "Succeeded"
        surface.wait_for("/drain")
    finally:
        process.kill()
        logging.getLogger("factory.worker").debug("ended")
