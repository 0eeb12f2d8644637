"""The hot paths: one run after another from submission to settlement, each act timed."""

from uuid import uuid4

from benchmarks.stopwatch import BASELINE, Baseline, Stopwatch
from runs.commands import start_run
from tests.support.hands import Hand
from tests.support.receipts import receipt
from tests.support.running import House

WARM_UP = 20
INSERTS = 5
"""Baseline inserts for each run, spread over it, so that both meet the same noise."""


def measure(rounds: int) -> Stopwatch:
    """So many runs of one step with ten receipts, on one connection."""
    house = House(f"bench-{uuid4().hex[:12]}", budget="100000000")
    hand, baseline, watch = house.hand(), Baseline(), Stopwatch()
    for _ in range(WARM_UP):
        one_run(house, hand, baseline, Stopwatch())
    for _ in range(rounds):
        one_run(house, hand, baseline, watch)
    baseline.close()
    return watch


def one_run(house: House, hand: Hand, baseline: Baseline, watch: Stopwatch) -> None:
    house.money.keep()  # a month may have begun; what that costs is of no round
    _insert(baseline, watch)
    with watch.timing("poll, nothing waits"):
        hand.poll()
    with watch.timing("submit"):
        run_id = house.accept()
    _insert(baseline, watch)
    with watch.timing("start: reserve and plan"):
        start_run(house.system, run_id=run_id)
    with watch.timing("poll: dispatch one step"):
        (work,) = hand.poll()
    _insert(baseline, watch)
    with watch.timing("lease: acquire"):
        hand.acquire(work)
    with watch.timing("lease: renew"):
        hand.acquire(work)
    _insert(baseline, watch)
    receipts = [receipt() for _ in range(10)]
    with watch.timing("receipts, 10"):
        hand.receipts(work, *receipts)
    with watch.timing("outcome: complete and settle"):
        hand.report(work, output={"found": 1})
    _insert(baseline, watch)


def _insert(baseline: Baseline, watch: Stopwatch) -> None:
    with watch.timing(BASELINE):
        baseline.once()
