"""What comes after a lease is over, or after the run was told to stop; and what an outcome leaves behind."""

from dataclasses import replace

import pytest

from factory.kernel.errors import DomainError
from factory.kernel.hashing import digest
from factory.kernel.tenancy import reading
from projects.commands import suspend_project
from runs.commands import cancel_run, close_attention, expire_lease, report
from runs.errors import AttemptSettled, StaleFencingToken
from tests.support.api import Api
from tests.support.evidence import audits, violations
from tests.support.hands import Hand
from tests.support.receipts import effect, receipt
from tests.support.running import House
from usage.selectors import usage_of_run

pytestmark = pytest.mark.slow

HASH = "sha256:" + "ab" * 32


def outcome(output: object = None, artifacts: object = ()) -> dict[str, object]:
    told = {"outcome": "Succeeded", "failureClass": None, "reason": None, "output": output}
    hashed = told | ({"artifacts": artifacts} if artifacts else {})
    return {"outcome": "Succeeded", "output": output, "artifacts": artifacts, "outcome_hash": digest(hashed)}


def bring(worker: Hand, work, output: object = None, *receipts: dict, artifacts: object = ()):
    scope = worker.scope(work.attempt_id)
    return report(scope, **worker.fence(work), receipts=receipts, **outcome(output, artifacts))


def lapse(house: House, work) -> None:
    house.let_lapse(work.lease_id)
    assert expire_lease(house.system, lease_id=work.lease_id, fencing_token=work.fencing_token)


def spent(house: House, run_id) -> int:
    with reading(house.system):
        return usage_of_run(run_id).records


@pytest.mark.requirement("ATT-16")
def test_receipts_in_a_refused_outcome_are_kept(house: House) -> None:
    run_id, worker = house.run(), house.hand()
    work = worker.take()
    lapse(house, work)
    with pytest.raises(StaleFencingToken) as refused:
        bring(worker, work, 1, receipt(), receipt())
    assert refused.value.extra["receiptsRecorded"] == 2
    assert (spent(house, run_id), house.attempt(work.attempt_id).state) == (2, "TimedOut")
    strange = replace(work, fencing_token=work.fencing_token - 1)
    with pytest.raises(StaleFencingToken) as refused:
        bring(worker, strange, 1, receipt())
    assert "receiptsRecorded" not in refused.value.extra, "A token that never was its own pays for nothing."
    assert spent(house, run_id) == 2

    house.make_due(run_id)
    again = worker.take()
    bring(worker, again, "first")
    with pytest.raises(AttemptSettled):
        bring(worker, again, "second", receipt())
    assert (house.row(run_id).output, spent(house, run_id)) == ("first", 3)


def test_a_late_effect_is_looked_at_and_closed_with_a_reason(house: House) -> None:
    run_id, worker = house.run("gated"), house.hand()
    work = worker.take()
    lapse(house, work)
    with pytest.raises(StaleFencingToken):
        bring(worker, work, 1, effect(None))
    step = house.steps(run_id)["publish"]
    assert step.attention == "late-effect"
    path = f"/factory/runs/{run_id}/steps/{step.id}/attention"
    body = {"reason": "I looked: nothing is there.", "version": step.version}
    assert Api.as_(house.world.requester).post(path, body).status_code == 403
    operator = Api.as_(house.world.operator)
    assert operator.post(path, body | {"reason": " "}).status_code == 400
    worker.receipts(work, effect(None))  # one more, after the Operator has read the page
    assert operator.post(path, body).status_code == 409
    body["version"] = house.steps(run_id)["publish"].version
    answer = operator.post(path, body)
    assert answer.status_code == 200, answer.content
    assert answer.json()["steps"][0]["attention"] == ""
    assert (
        operator.post(path, body | {"version": body["version"] + 1})
        .json()["type"]
        .endswith("nothing-to-close")
    )
    [noted] = audits(house.system, "CloseAttention")
    assert (noted.reason, noted.detail["attention"]) == ("I looked: nothing is there.", "late-effect")
    assert violations(house.tenant) == []
    worker.receipts(work, effect(None))
    assert house.steps(run_id)["publish"].attention == "late-effect", "The next one is looked at anew."


def test_a_doubt_is_settled_and_not_closed(house: House) -> None:
    run_id, worker = house.run("gated"), house.hand()
    work = worker.take()
    worker.report(work, "Uncertain", "uncertain", reason="the line was cut")
    step = house.steps(run_id)["publish"]
    with pytest.raises(DomainError) as refused:
        close_attention(
            house.world.operator, run_id=run_id, step_id=step.id, reason="x", version=step.version
        )
    assert refused.value.code == "nothing-to-close"


@pytest.mark.parametrize("meanwhile", ["cancelled", "suspended"])
def test_the_identical_authorization_answers_the_same_whatever_became_of_the_run(
    house: House, meanwhile
) -> None:
    run_id, worker = house.run("gated"), house.hand()
    work = worker.take()
    asked = worker.ask(work)
    house.decide(asked.approval_id)
    taken = worker.authorize(work, asked.approval_id)
    [lease] = house.leases(run_id)
    if meanwhile == "cancelled":
        cancel_run(house.world.operator, run_id=run_id, reason="stop")
    else:
        suspend_project(house.world.tenant_admin, project_id=house.world.project, reason="audit")
    assert worker.authorize(work, asked.approval_id) == taken
    with pytest.raises(DomainError):
        worker.authorize(work, asked.approval_id, proposal={"kind": "text", "text": "another"})
    if meanwhile == "cancelled":
        assert house.leases(run_id)[0].expires_at == lease.expires_at, (
            "It renews nothing of a run that stops."
        )
        with pytest.raises(StaleFencingToken):
            worker.authorize(replace(work, fencing_token=1), asked.approval_id)


def test_artifacts_are_kept_by_place_hash_and_size(house: House) -> None:
    run_id, worker = house.run(), house.hand()
    work = worker.take()
    made = [{"uri": "s3://reports/r.md", "hash": HASH, "size": 4711}]
    with pytest.raises(DomainError) as refused:
        report(worker.scope(work.attempt_id), **worker.fence(work), **{**outcome(1), "artifacts": made})
    assert refused.value.code == "outcome-hash-mismatch", "What is told of them is hashed with the rest."
    first = bring(worker, work, 1, artifacts=made)
    assert bring(worker, work, 1, artifacts=made) == first
    with pytest.raises(AttemptSettled):
        bring(worker, work, 1, artifacts=[made[0] | {"size": 1}])
    [attempt] = Api.as_(house.world.observer).get(f"/factory/runs/{run_id}").json()["steps"][0]["attempts"]
    assert attempt["artifacts"] == made


@pytest.mark.requirement("ATT-05")
@pytest.mark.parametrize("denied", [True, False])
def test_transient_after_an_authorization_is_retried_only_with_a_word_that_nothing_was_done(
    house, denied
) -> None:
    run_id, worker = house.run("gated"), house.hand()
    work = worker.take()
    asked = worker.ask(work)
    house.decide(asked.approval_id)
    worker.authorize(work, asked.approval_id)
    worker.fail(work, receipts=[effect(asked.approval_id, tookPlace=False)] if denied else [receipt()])
    step = house.steps(run_id)["publish"]
    if not denied:
        assert (house.attempt(work.attempt_id).state, step.attention) == ("Uncertain", "uncertain")
        return
    assert (house.attempt(work.attempt_id).state, step.state) == ("Failed", "Pending")
    house.make_due(run_id)
    again = worker.take()
    with pytest.raises(DomainError) as refused:
        worker.authorize(again, asked.approval_id)
    assert refused.value.http_status == 409, "The approval is spent: the next attempt asks again."
    assert worker.ask(again).approval_id != asked.approval_id
