"""Receipts: each for itself, known within its run; one that is refused is named and kept for a person."""

import json
from dataclasses import replace
from typing import Any

import pytest

from factory.kernel.errors import DomainError
from factory.kernel.hashing import digest
from factory.kernel.tenancy import reading
from runs.commands import expire_lease, report
from runs.errors import LeaseOver, StaleFencingToken
from runs.models import Artifact, Receipt, RefusedReceipt
from runs.selectors.answers import OfferedAttempt
from tests.support.evidence import audits, violations
from tests.support.hands import Hand
from tests.support.receipts import costing, effect, receipt
from tests.support.running import House
from usage.models import UsageRecord
from usage.selectors import reservation_of

FAULTY = {"occurredAt": "yesterday"}


@pytest.fixture
def house(tenant_id: str) -> House:
    return House(tenant_id)


def results(taken: Any) -> list[str]:
    return [each.result for each in taken.receipts]


def refused(house: House) -> list[RefusedReceipt]:
    with reading(house.system):
        return list(RefusedReceipt.objects.select_related("recorded").order_by("refused_at", "id"))


def used(house: House, run_id: Any) -> list[str]:
    with reading(house.system):
        rows = UsageRecord.objects.filter(run_id=run_id).order_by("id")
        return [row.receipt_id for row in rows]


def bring(worker: Hand, work: OfferedAttempt, output: object, *receipts: Any, artifacts: Any = ()) -> Any:
    told = {"outcome": "Succeeded", "failureClass": None, "reason": None, "output": output}
    hashed = told | ({"artifacts": list(artifacts)} if artifacts else {})
    return report(
        worker.scope(work.attempt_id),
        **worker.fence(work),
        outcome="Succeeded",
        output=output,
        outcome_hash=digest(hashed),
        receipts=list(receipts),
        artifacts=list(artifacts),
    )


@pytest.mark.requirement("USG-06")
def test_two_runs_have_receipts_of_one_id_and_both_are_paid(house: House) -> None:
    worker = house.hand()
    one, two = house.run(), house.run()
    works = {work.run_id: work for work in worker.poll()}
    for run_id, usd in ((one, "0.010000"), (two, "4.900000")):
        worker.acquire(works[run_id])
        call = costing(usd) | {"receiptId": "chatcmpl-123"}
        assert results(worker.receipts(works[run_id], call)) == ["accepted"]
        worker.report(works[run_id], output=1)
    with reading(house.system):
        assert [str(reservation_of(run_id).spent) for run_id in (one, two)] == ["0.010000", "4.900000"]
    assert violations(house.tenant) == []


def test_the_same_receipt_of_another_provider_is_another_receipt(house: House) -> None:
    run_id, worker = house.run(), house.hand()
    work, call = worker.take(), receipt()
    taken = worker.receipts(work, call, call | {"provider": "elsewhere"})
    assert (results(taken), len(used(house, run_id))) == (["accepted", "accepted"], 2)
    assert violations(house.tenant) == []


def test_a_repeat_is_taken_once_and_other_content_is_kept_for_a_person(house: House) -> None:
    run_id, worker = house.run(), house.hand()
    work, call = worker.take(), costing("0.01")
    other = call | {"cost": {"amount": "4.900000", "currency": "USD"}}
    assert results(worker.receipts(work, call)) == ["accepted"]
    assert results(worker.receipts(work, call | {"details": None})) == ["repeat"]
    for _ in range(2):  # the answer may have been lost
        taken = worker.receipts(work, other, receipt())
        assert results(taken) == ["refused", "accepted"]
        [no] = taken.refused
        assert (no.pointer, no.code, no.receipt_id) == ("/receipts/0", "receipt-conflict", call["receiptId"])
    [row] = refused(house)
    assert len(used(house, run_id)) == 4
    assert used(house, run_id)[2] == f"refused {row.id}", "It may have been paid: of unknown cost, and once."
    assert (row.code, row.run_id, row.attempt_id) == ("receipt-conflict", run_id, work.attempt_id)
    assert json.loads(row.content)["cost"]["amount"] == "4.900000"
    assert row.recorded.content["cost"]["amount"] == "0.01"
    [noted] = audits(house.system, "RefuseReceipt")
    assert (noted.outcome, noted.detail["code"]) == ("refused", "receipt-conflict")
    assert violations(house.tenant) == []


def test_two_that_quarrel_in_one_call_are_told_apart(house: House) -> None:
    run_id, worker = house.run(), house.hand()
    work, call = worker.take(), receipt()
    taken = worker.receipts(work, call, call, call | {"quantities": None})
    assert results(taken) == ["accepted", "repeat", "refused"]
    assert (len(used(house, run_id)), [row.code for row in refused(house)]) == (2, ["receipt-conflict"])


FAULTS: list[Any] = [
    receipt(**FAULTY),
    receipt(quantities={"seconds": "many"}),
    receipt(kind="gift"),
    {"receiptId": "alone"},
    "a receipt",
    7,
    None,
    [],
]


@pytest.mark.requirement("ATT-16")
@pytest.mark.parametrize("faulty", FAULTS, ids=[str(n) for n in range(len(FAULTS))])
def test_an_outcome_counts_although_one_of_its_receipts_is_faulty(house: House, faulty: Any) -> None:
    run_id, worker = house.run(), house.hand()
    work, good = worker.take(), receipt()
    first = bring(worker, work, "done", good, faulty, receipt())
    assert (first.outcome, house.state(run_id), house.row(run_id).output) == (
        "Succeeded",
        "Completed",
        "done",
    )
    [no] = first.refused_receipts
    assert (no.pointer, no.code) == ("/receipts/1", "invalid-receipt")
    assert "/receipts/1" in no.detail
    assert good["receiptId"] in used(house, run_id)
    [row] = refused(house)
    assert json.loads(row.content) == faulty
    assert len(audits(house.system, "RefuseReceipt")) == 1
    assert violations(house.tenant) == []


def test_the_same_outcome_again_is_answered_the_same_and_loses_no_receipt(house: House) -> None:
    run_id, worker = house.run(), house.hand()
    work, brought = worker.take(), [receipt(), receipt(**FAULTY)]
    first = bring(worker, work, 1, *brought)
    assert bring(worker, work, 1, *brought) == first
    forgotten = receipt()
    assert bring(worker, work, 1, *brought, forgotten) == first, "Receipts are no part of the outcome's hash."
    [no] = refused(house)
    assert used(house, run_id) == [brought[0]["receiptId"], f"refused {no.id}", forgotten["receiptId"]]
    with reading(house.system):
        assert Receipt.objects.get(receipt_id=forgotten["receiptId"]).superseded
    assert violations(house.tenant) == []


@pytest.mark.requirement("ATT-16")
def test_one_faulty_receipt_of_a_refused_outcome_costs_the_others_nothing(house: House) -> None:
    run_id, worker = house.run(), house.hand()
    work, good = worker.take(), receipt()
    house.let_lapse(work.lease_id)
    assert expire_lease(house.system, lease_id=work.lease_id, fencing_token=work.fencing_token)
    with pytest.raises(StaleFencingToken) as no:
        bring(worker, work, 1, good, receipt(**FAULTY))
    assert no.value.extra["receiptsRecorded"] == 1
    assert [each["pointer"] for each in no.value.extra["refusedReceipts"]] == ["/receipts/1"]
    [kept] = refused(house)
    assert used(house, run_id) == [good["receiptId"], f"refused {kept.id}"]
    assert violations(house.tenant) == []


def test_what_a_zombie_is_told_is_on_record(house: House) -> None:
    house.run()
    worker = house.hand()
    work = worker.take()
    house.let_lapse(work.lease_id)
    assert expire_lease(house.system, lease_id=work.lease_id, fencing_token=work.fencing_token)
    with pytest.raises(LeaseOver):
        worker.ask(work)
    [noted] = audits(house.system, "RequestApproval")
    assert (noted.outcome, noted.subject) == ("refused", f"attempt:{work.attempt_id}")


def test_an_effect_that_no_sound_receipt_shows_is_looked_at(house: House) -> None:
    run_id, worker = house.run("gated"), house.hand()
    work = worker.take()
    denied = effect(None, tookPlace=False) | FAULTY
    taken = worker.receipts(work, denied)
    assert (results(taken), house.steps(run_id)["publish"].attention) == (["refused"], "")
    worker.receipts(work, effect(None) | FAULTY)
    assert house.steps(run_id)["publish"].attention == "late-effect"
    assert len(audits(house.system, "UnprovenEffect")) == 1


def test_who_never_held_the_lease_leaves_no_receipt(house: House) -> None:
    house.run()
    worker = house.hand()
    work = worker.take()
    strange = replace(work, fencing_token=work.fencing_token - 1)
    with pytest.raises(DomainError):
        worker.receipts(strange, receipt(), receipt(**FAULTY))
    assert refused(house) == []


HASH = "sha256:" + "ab" * 32
SOUND = {"uri": "s3://reports/r.md", "hash": HASH, "size": 4711}
BAD = [
    SOUND | {"uri": "javascript:alert(1)"},
    SOUND | {"hash": "sha256:AB"},
    SOUND | {"size": -1},
    {"uri": "s3://a", "hash": HASH},
    SOUND | {"size": 1},
    "s3://a",
    None,
]


@pytest.mark.parametrize("faulty", BAD, ids=[str(n) for n in range(len(BAD))])
def test_an_outcome_counts_although_one_of_its_artifacts_is_faulty(house: House, faulty: Any) -> None:
    run_id, worker = house.run(), house.hand()
    work = worker.take()
    first = bring(worker, work, 1, artifacts=[SOUND, faulty])
    [no] = first.refused_artifacts
    assert (no.pointer, no.code) == ("/artifacts/1", "invalid-artifact")
    assert bring(worker, work, 1, artifacts=[SOUND, faulty]) == first
    with reading(house.system):
        assert [row.uri for row in Artifact.objects.filter(run_id=run_id)] == [SOUND["uri"]]
    [noted] = audits(house.system, "RefuseArtifact")
    assert (noted.outcome, house.state(run_id)) == ("refused", "Completed")
