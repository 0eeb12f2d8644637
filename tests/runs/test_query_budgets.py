"""How many statements the hot paths send: an index is no help to a path that asks too often."""

from uuid import uuid4

import pytest

from factory import reloading
from runs.commands import start_run, submit
from tests.support.api import Api
from tests.support.queries import within_budget
from tests.support.running import House, receipt

RUNS = "/factory/runs"


@pytest.fixture(autouse=True)
def settings_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a moment has passed since they were last read is not what is counted here."""
    monkeypatch.setattr(reloading, "SECONDS_REMEMBERED", 3600.0)


def test_the_commands_of_a_run_stay_within_their_budgets(house: House) -> None:
    ctx, worker = house.world.requester, house.hand()
    with within_budget("runs.submit"):
        body, _ = submit(ctx, payload=house.payload(), key=str(uuid4()))
    with within_budget("runs.start"):
        start_run(house.system, run_id=body["runId"])
    with within_budget("runs.poll"):
        [work] = worker.poll()
    with within_budget("runs.acquire"):
        worker.acquire(work)
    with within_budget("runs.renew"):
        worker.acquire(work)
    with within_budget("runs.outcome"):
        worker.report(work, output=1, receipts=[receipt()])
    with within_budget("runs.poll.idle"):
        assert worker.poll() == []


@pytest.mark.requirement("API-11")
def test_lists_cost_the_same_however_long_they_are(house: House) -> None:
    api, worker = Api.as_(house.world.requester), house.hand(slots=9)
    for _ in range(3):
        run_id = house.run("diamond")
    for work in worker.poll():
        worker.acquire(work)
    api.get(RUNS)  # keys and caches are warm
    paths = {
        "GET /runs": RUNS,
        "GET /runs/{id}": f"{RUNS}/{run_id}",
        "GET /runs/{id}/journal": f"{RUNS}/{run_id}/journal",
        "GET /runs/{id}/graph": f"{RUNS}/{run_id}/graph",
    }
    for name, path in paths.items():
        with within_budget(name):
            assert api.get(path).status_code == 200
