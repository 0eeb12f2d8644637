"""Every event of Run Control: its topic, its version, what it carries, and who is known to want it."""

import json
from pathlib import Path
from typing import Any

import pytest

import runs.events  # noqa: F401  declares the events
from factory.kernel.events import known_consumers, schema, topics

CARRIES: dict[str, tuple[int, dict[str, str], set[str]]] = {
    "run-control.runs.v1.run-accepted": (4, {
        "runId": "uuid", "tenantId": "", "projectId": "uuid", "workflowId": "", "releaseId": "uuid",
        "policyRevision": "", "modelProfileId": "", "requestedBy": "",
    }, set()),
    "run-control.runs.v1.run-state-changed": (2, {
        "runId": "uuid", "tenantId": "", "fromState": "enum", "toState": "enum", "cause": "",
    }, set()),
    "run-control.runs.v1.run-completed": (8, {"runId": "uuid", "tenantId": "", "outcomeHash": "hash"}, set()),
    "run-control.runs.v1.run-failed": (4, {
        "runId": "uuid", "tenantId": "", "failureClass": "enum", "reason": "",
    }, set()),
    "run-control.runs.v1.run-cancelled": (5, {
        "runId": "uuid", "tenantId": "", "reason": "", "requestedBy": "",
    }, set()),
    "run-control.attempts.v1.attempt-dispatched": (2, {
        "runId": "uuid", "stepId": "uuid", "attemptId": "uuid", "leaseId": "uuid", "fencingToken": "",
        "agentId": "",
    }, {"skillId"}),
    "run-control.attempts.v1.attempt-outcome-recorded": (5, {
        "runId": "uuid", "stepId": "uuid", "attemptId": "uuid", "outcome": "enum",
    }, {"failureClass", "outcomeHash"}),
    "run-control.leases.v1.lease-expired": (3, {"attemptId": "uuid", "leaseId": "uuid", "holder": ""}, set()),
    "run-control.approvals.v1.approval-requested": (3, {
        "approvalId": "uuid", "runId": "", "stepId": "", "tenantId": "", "actionClass": "",
        "proposalHash": "hash", "approverRule": "", "expiresAt": "date-time",
    }, set()),
    "run-control.approvals.v1.approval-decided": (13, {
        "approvalId": "uuid", "runId": "", "tenantId": "", "state": "enum",
    }, {"decidedBy", "reason"}),
}  # fmt: skip


def form(of: dict[str, Any]) -> str:
    if "enum" in of:
        return "enum"
    return "hash" if "sha256" in of.get("pattern", "") else str(of.get("format", ""))


@pytest.mark.requirement(
    "EVT-07",
    "EVT-08",
    "EVT-09",
    "EVT-10",
    "EVT-11",
    "EVT-12",
    "EVT-13",
    "EVT-14",
    "EVT-15",
    "EVT-16",
    "EVT-17",
    "EVT-18",
    "EVT-19",
    "EVT-20",
    "EVT-21",
    "EVT-22",
    "EVT-23",
    "EVT-24",
    "EVT-26",
    "EVT-27",
    "EVT-44",
)
@pytest.mark.parametrize("topic", CARRIES)
def test_an_event_of_run_control_is_what_its_consumers_were_promised(topic: str) -> None:
    consumers, required, optional = CARRIES[topic]
    declared = topics()[topic]
    told = schema(declared)
    assert (declared.schema_version, len(declared.consumers)) == (1, consumers)
    assert {name: form(told["properties"][name]) for name in told["required"]} == required
    assert optional <= set(told["properties"]) - set(required)


@pytest.mark.requirement("EVT-10", "EVT-15", "EVT-21", "EVT-27")
def test_the_words_of_the_schemas_are_those_of_the_states() -> None:
    told = {topic: schema(cls)["properties"] for topic, cls in topics().items()}
    run = ["Accepted", "Running", "WaitingForApproval", "Cancelling", "Completed", "Failed", "Cancelled"]
    assert told["run-control.runs.v1.run-state-changed"]["toState"]["enum"] == run
    assert set(told["run-control.runs.v1.run-failed"]["failureClass"]["enum"]) == {
        "transient", "permanent", "validation", "policy-denied", "budget", "cancellation", "uncertain",
    }  # fmt: skip
    assert set(told["run-control.attempts.v1.attempt-outcome-recorded"]["outcome"]["enum"]) == {
        "Succeeded", "Failed", "TimedOut", "Cancelled", "Uncertain",
    }  # fmt: skip
    assert "Pending" not in told["run-control.approvals.v1.approval-decided"]["state"]["enum"]


@pytest.mark.requirement("EVT-45", "EVT-46", "EVT-47", "EVT-48", "WFE-04")
def test_the_register_of_consumers_has_every_service_with_its_events() -> None:
    found = {
        name: {topic.rsplit(".", 1)[-1] for topic in wanted} for name, wanted in known_consumers().items()
    }
    assert len(found) == 21
    assert found["CostUsageService"] == {
        "run-accepted", "run-completed", "run-failed", "run-cancelled", "attempt-outcome-recorded",
    }  # fmt: skip
    assert found["SecretBrokerService"] == {"run-cancelled", "lease-expired"}
    assert found["AgentRuntimeService"] == {
        "attempt-dispatched", "lease-expired", "approval-decided", "run-cancelled",
    }  # fmt: skip
    assert found["WorkflowEngineService"] == {
        "run-accepted", "run-cancelled", "attempt-outcome-recorded", "approval-decided",
    }  # fmt: skip
    assert found["AuditService"] == {
        "approval-requested", "approval-decided", "approval-break-glass", "waiver-changed",
    }  # fmt: skip
    assert sum(map(len, found.values())) == 54


def test_each_event_has_its_schema_in_a_file() -> None:
    folder = Path(__file__).resolve().parents[2] / "docs" / "events"
    for topic, cls in topics().items():
        if not topic.startswith(("tests.", "doors.")) and cls.__module__.split(".")[0] != "tests":
            assert json.loads((folder / f"{topic}.json").read_text()) == schema(cls)
