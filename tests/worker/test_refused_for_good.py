"""What the reference worker does with a no that stays one, with artifacts, and after its lease is gone."""

import threading
import time

import pytest

from runs.worker.client import WorkerClient
from runs.worker.errors import ApiForbidden
from runs.worker.receipts import ReceiptBook
from runs.worker.runtime import WorkerOptions, WorkerRuntime
from runs.worker.wire import digest
from tests.worker.surface import Surface, problem

HASH = "sha256:" + "ab" * 32


def test_a_pool_that_is_not_there_is_not_asked_for_ever(
    surface: Surface, client: WorkerClient, tmp_path
) -> None:
    surface.faults["w1"] += [lambda: problem(403, "pool-unknown")] * 3
    with pytest.raises(ApiForbidden) as refused:
        WorkerRuntime(client, WorkerOptions(cache=tmp_path)).run()
    assert (refused.value.slug, len(surface.got("/w1"))) == ("pool-unknown", 1)


def test_a_pool_that_is_taken_away_ends_the_worker(surface: Surface, client: WorkerClient, tmp_path) -> None:
    surface.faults["poll"] += [lambda: problem(403, "pool-unknown")] * 3
    worker = WorkerRuntime(client, WorkerOptions(cache=tmp_path, drain_seconds=0.1))
    ended: list[int] = []
    thread = threading.Thread(target=lambda: ended.append(worker.run()), daemon=True)
    thread.start()
    thread.join(10)
    assert ended == [1]


def test_artifacts_travel_with_the_outcome_and_in_its_hash(surface: Surface, started) -> None:
    code = f"def run(context):\n    context.artifact('s3://store/r.md', '{HASH}', 7)\n    return 1\n"
    surface.publish({"skills/work.py": code})
    surface.offer()
    started()
    (told,) = surface.wait_for("/outcome")
    assert told["artifacts"] == [{"uri": "s3://store/r.md", "hash": HASH, "size": 7}]
    names = ("outcome", "failureClass", "reason", "output", "artifacts")
    assert told["outcomeHash"] == digest({name: told[name] for name in names})


def test_who_lost_its_lease_still_tells_what_it_spent(surface: Surface, started) -> None:
    surface.publish(
        {
            "skills/work.py": "import time\n\n\ndef run(context):\n"
            "    with context.tool('brew'):\n        time.sleep(0.1)\n"
            "    time.sleep(1)\n    context.check()\n"
        }
    )
    surface.ttl = 0.6
    surface.offer()
    taken: list[int] = []

    def lease():
        taken.append(1)
        return surface.granted() if len(taken) == 1 else problem(409, "stale-fencing-token")

    surface.lease = lease
    started()
    told = surface.wait_for("/receipts")[0]
    assert [each["name"] for each in told["receipts"]] == ["brew"]
    assert surface.got("/outcome") == []


def test_a_refused_receipt_costs_no_outcome_and_is_named_in_the_log(
    surface: Surface, started, caplog
) -> None:
    surface.publish({"skills/work.py": "def run(context):\n    return 1\n"})
    no = {"pointer": "/receipts/0", "receiptId": "r-1", "code": "invalid-receipt", "detail": "it is faulty"}
    surface.faults["outcome"] += [lambda: (200, {"refusedReceipts": [no]})]
    surface.offer()
    with caplog.at_level("WARNING", "factory.worker"):
        started()
        surface.wait_for("/outcome")
        until = time.monotonic() + 10
        while "Succeeded" not in caplog.text and time.monotonic() < until:
            time.sleep(0.02)
    assert len(surface.got("/outcome")) == 1
    assert "r-1 was refused: invalid-receipt: it is faulty" in caplog.text


def test_an_outcome_that_is_never_taken_is_told_as_failed_once(surface: Surface, started) -> None:
    surface.publish({"skills/work.py": "def run(context):\n    return 1\n"})
    surface.faults["outcome"] += [lambda: problem(400, "value-not-kept")]
    surface.offer()
    started()
    first, second = surface.wait_for("/outcome", 2)
    assert (first["outcome"], second["outcome"], second["failureClass"]) == (
        "Succeeded",
        "Failed",
        "permanent",
    )
    assert "value-not-kept" in second["reason"]


@pytest.mark.parametrize(
    "fault", [(400, "value-not-kept"), (403, "forbidden"), (409, "stale-fencing-token")], ids=str
)
def test_receipts_that_are_not_taken_cost_no_outcome_and_are_sent_after_it(
    surface: Surface, started, fault: tuple[int, str]
) -> None:
    code = (
        "def run(context):\n    for _ in range(150):\n        with context.tool('brew'):\n            pass\n"
    )
    surface.publish({"skills/work.py": code + "    return 1\n"})
    surface.faults["receipts"] += [lambda: problem(*fault)]
    surface.offer()
    started()
    (told,) = surface.wait_for("/outcome")
    refused, later = surface.wait_for("/receipts", 2)
    assert (told["outcome"], len(told["receipts"]), len(refused["receipts"])) == ("Succeeded", 100, 150)
    assert [*told["receipts"], *later["receipts"]] == refused["receipts"]
    assert len(surface.got("/outcome")) == 1


def test_details_that_are_no_json_cost_no_receipt() -> None:
    book = ReceiptBook()
    book.add("tool", "here", "x", quantities=None, details={"ratio": float("nan"), "text": "\ud800"})
    (pending,) = book.pending()
    digest(pending)
    assert pending["details"] == {"ratio": "nan", "text": "\\ud800"}, (
        "Each value that JSON cannot carry is told as text."
    )
