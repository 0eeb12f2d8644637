"""A number that would not come back from the database as it was sent is refused by whatever takes it in."""

import json
from collections.abc import Callable
from copy import deepcopy
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from approvals.errors import PolicyInvalid
from approvals.policy.document import platform_default, written
from approvals.policy.document import read as parse
from factory.evidence.auditor import verify
from factory.kernel.errors import ValueNotKept
from registry.commands.inputs import score_faults
from registry.errors import ManifestRefused
from registry.manifest.definitions import parse as parse_manifest
from runs.commands import ParkRequest, create_run_template, request_approval
from runs.rest.submissions import read_template
from runs.worker.attempt import _succeeded
from runs.worker.context import _check_kept
from runs.worker.errors import SkillFailed
from runs.worker.wire import digest as kit_digest
from tests.console.test_pages import signed_in
from tests.support.api import Api, problem
from tests.support.receipts import receipt
from tests.support.running import House
from tests.support.workflows import MANIFEST, PROFILE, node, workflow

pytestmark = pytest.mark.slow
BIG = 1.7e18


@pytest.fixture
def house(tenant_id: str) -> House:
    """A house with a workflow whose input takes any number."""
    house = House(tenant_id)
    flow = workflow("numbers", node("look"))
    flow["inputSchema"]["properties"]["n"] = {"type": "number"}
    house.publish(
        MANIFEST | {"version": "1.1.0", "workflows": [*MANIFEST["workflows"], flow]}, commit="b" * 40
    )
    return house


def test_a_submission_over_rest_says_where(house: House) -> None:
    body = house.payload("numbers", input={"repository": "x", "n": BIG})
    answer = Api.as_(house.world.requester).post("/factory/runs", body, Idempotency_Key=str(uuid4()))
    told = problem(answer)
    assert (told["status"], told["type"]) == (400, "/factory/problems/value-not-kept")
    assert [fault["pointer"] for fault in told["errors"]] == ["/input/n"]
    assert verify(["F2b"]).unchecked == []


def test_a_submission_from_the_command_line_says_where(house: House, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    options = {"tenant": house.tenant, "project": "main", "subject": house.world.requester.actor.subject}
    file.write_text(json.dumps(house.payload("numbers", input={"repository": "x", "n": BIG})))
    with pytest.raises(CommandError, match=r"/input/n: A number lies between"):
        call_command("submit", str(file), stdout=StringIO(), **options)
    file.write_text('{"a": 1, "a": 2}')
    with pytest.raises(CommandError, match="there twice"):
        call_command("submit", str(file), stdout=StringIO(), **options)


def propose(hand: Any, work: Any, proposal: Any) -> Any:
    return request_approval(
        hand.scope(work.attempt_id),
        **hand.fence(work),
        release_id=UUID(work.release["id"]),
        snapshot_id=UUID(work.snapshot["snapshotId"]),
        policy_revision=work.snapshot["policyRevision"],
        action_class="shared-write",
        environment_id=None,
        proposal=proposal,
        proposal_hash="sha256:" + "0" * 64,
        summary="publish wants to commit",
    )


REPORTS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "output": (lambda hand, work: hand.report(work, output={"ns": [1, BIG]}), "/output/ns/1"),
    "checkpoint": (lambda hand, work: hand.ask(work, park=ParkRequest({"at": BIG})), "/park/checkpoint/at"),
    "proposal": (lambda hand, work: propose(hand, work, {"n": BIG}), "/proposal/n"),
}


@pytest.mark.parametrize("what", REPORTS)
def test_what_a_worker_reports_says_where(house: House, what: str) -> None:
    house.run("gated")
    hand = house.hand()
    act, pointer = REPORTS[what]
    work = hand.take()
    with pytest.raises(ValueNotKept) as refused:
        act(hand, work)
    assert [fault.pointer for fault in refused.value.errors] == [pointer]


def test_a_receipt_is_refused_where_its_number_is(house: House) -> None:
    house.run("single")
    hand = house.hand()
    faulty = receipt() | {"details": {"tokens": 2**60}}
    answer = hand.receipts(hand.take(), receipt(), faulty)
    assert [each.result for each in answer.receipts] == ["accepted", "refused"]
    assert "/details/tokens" in repr(answer.refused)


def test_a_template_and_its_form_say_where(house: House) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "number", "maximum": BIG}}}
    content = {
        "name": "numbers", "workflowId": "numbers", "modelProfileId": PROFILE,
        "limits": {"maxCostUsd": 5, "maxMinutes": 30},
    }  # fmt: skip
    with pytest.raises(ValueNotKept) as refused:
        create_run_template(house.world.operator, wanted=read_template(content | {"inputSchema": schema}))
    assert [fault.pointer for fault in refused.value.errors] == ["/inputSchema/properties/n/maximum"]
    form = {
        "name": "numbers", "workflowId": "numbers", "modelProfileId": PROFILE, "maxCostUsd": "5",
        "maxMinutes": "30", "inputSchema": json.dumps(schema),
    }  # fmt: skip
    page = signed_in(house.world.operator).post(reverse("admin:runs_new_template"), form)
    assert page.status_code == 400
    assert "A number lies between" in page.content.decode()
    twice = signed_in(house.world.operator).post(
        reverse("admin:runs_new_template"), form | {"inputSchema": '{"type": "object", "type": "array"}'}
    )
    assert "there twice" in twice.content.decode()


def test_a_manifest_a_policy_and_scores_say_where() -> None:
    with pytest.raises(ManifestRefused) as manifest:
        parse_manifest(b"asset: x\nlimits:\n  most: 1.0e+22\n")
    assert [fault.pointer for fault in manifest.value.errors] == ["/limits/most"]
    document = deepcopy(platform_default())
    document["note"] = [BIG]
    with pytest.raises(PolicyInvalid) as policy:
        parse(written(document))
    assert [fault.pointer for fault in policy.value.errors] == ["/note/0"]
    assert [fault.pointer for fault in score_faults({"found": 1e22, "x": 2**53})] == [
        "/scores/found",
        "/scores/x",
    ]


def test_the_worker_kit_refuses_it_before_it_is_sent() -> None:
    for value in (BIG, 2**53, float("nan"), "a\x00", "\ud800"):
        with pytest.raises(ValueError, match="not canonical JSON"):
            kit_digest({"a": [value]})
        with pytest.raises(SkillFailed) as failed:
            _succeeded({"a": value})
        assert failed.value.failure_class == "validation"
        with pytest.raises(SkillFailed, match="the proposal is not canonical JSON"):
            _check_kept(proposal=[value], checkpoint=None)
