"""Settling what nobody could know: an Operator finds out, and says so with evidence."""

import pytest

from factory.kernel.errors import DomainError
from factory.kernel.tenancy import reading
from runs.commands import cancel_run, resolve_step
from runs.models import Resolution
from tests.support.api import Api, problem
from tests.support.running import House

pytestmark = pytest.mark.slow


@pytest.fixture
def doubtful(house: House):
    """A run whose only step may have had its effect."""
    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    asked = worker.ask(work)
    house.decide(asked.approval_id)
    worker.authorize(work, asked.approval_id)
    worker.report(work, "Uncertain", "uncertain", reason="the line was cut")
    return run_id, house.steps(run_id)["publish"], worker


def resolve(house: House, run_id, step, resolution: str, ctx=None, **other) -> int:
    values = {"resolution": resolution, "evidence": "I looked at the branch.", "version": step.version}
    return resolve_step(ctx or house.world.operator, run_id=run_id, step_id=step.id, **{**values, **other})


@pytest.mark.parametrize(
    ("resolution", "step_state", "run_state"),
    [
        ("effect-happened", "Succeeded", "Completed"),
        ("effect-did-not-happen", "Pending", "Running"),
        ("give-up", "Failed", "Failed"),
    ],
)
def test_each_answer_moves_the_step(house: House, doubtful, resolution, step_state, run_state) -> None:
    run_id, step, worker = doubtful
    resolve(house, run_id, step, resolution)
    assert (house.step_states(run_id), house.state(run_id)) == ({"publish": step_state}, run_state)
    assert house.steps(run_id)["publish"].attention == ""
    with reading(house.system):
        [kept] = Resolution.objects.filter(step_id=step.id)
    assert kept.resolved_by == house.world.operator.actor.subject
    if resolution == "effect-did-not-happen":
        again = worker.take()
        assert worker.ask(again).opened, "The approval is spent."
        worker.report(again, output=1)
        assert house.state(run_id) == "Completed"


def test_of_a_cancelled_run_the_evidence_alone_is_kept(house: House, doubtful) -> None:
    run_id, step, _ = doubtful
    assert cancel_run(house.world.operator, run_id=run_id, reason="enough") == "Cancelled"
    step = house.steps(run_id)["publish"]
    assert (step.state, step.attention) == ("Cancelled", "uncertain")
    resolve(house, run_id, step, "effect-did-not-happen")
    step = house.steps(run_id)["publish"]
    assert (step.state, step.attention) == ("Cancelled", "")


def test_refuses_the_wrong_person_the_old_version_and_no_evidence(house: House, doubtful) -> None:
    run_id, step, _ = doubtful
    cases = [
        ({"ctx": house.world.requester}, "insufficient-role"),
        ({"version": step.version - 1}, "version-mismatch"),
        ({"evidence": " "}, "invalid-input"),
        ({"resolution": "who-knows"}, "invalid-input"),
    ]
    for changes, code in cases:
        with pytest.raises(DomainError) as refused:
            resolve(house, run_id, step, **{"resolution": "give-up", **changes})
        assert refused.value.code == code
    resolve(house, run_id, step, "give-up")
    with pytest.raises(DomainError) as refused:
        resolve(house, run_id, step, "effect-happened")
    assert refused.value.code == "nothing-to-settle"


def test_over_http(house: House, doubtful) -> None:
    run_id, step, _ = doubtful
    path = f"/factory/runs/{run_id}/steps/{step.id}/resolution"
    body = {"resolution": "effect-happened", "evidence": "The commit is there.", "version": step.version}
    api = Api.as_(house.world.operator)
    old = api.post(path, body | {"version": 1})
    assert (old.status_code, problem(old)["type"]) == (409, "/factory/problems/version-mismatch")
    assert api.post(path, body).json()["state"] == "Completed"
