"""What was promised of a run's rows, events and evidence, read back from what was done to a few runs."""

import sys
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
import structlog
import yaml
from django.db import DatabaseError, OperationalError, connection

from approvals.models import ApprovalRequest
from approvals.selectors import approvals_of_run
from factory.identity.config import identity_settings
from factory.identity.keys import RemoteKeys
from factory.identity.tokens import verifier
from factory.kernel.events import known_consumers
from factory.kernel.models import AuditEntry, JournalEntry, OutboxEvent
from factory.kernel.tenancy import reading
from factory.messaging.relay.destinations import envelope
from factory.messaging.relay.handlers import Received, handlers
from projects.models import Membership
from projects.states import Role
from runs import states
from runs.commands import cancel_run, start_run
from runs.models import CancellationIntent, Run, Step
from runs.reconcilers import LeaseExpiryReconciler
from tests.architecture.source import ROOT
from tests.runs.test_walls import execute
from tests.support.acts import deliver, newer
from tests.support.api import Api, problem
from tests.support.evidence import audits, counts, outbox, violations
from tests.support.proposals import said
from tests.support.receipts import effect
from tests.support.running import House
from tests.support.workflows import human, node, workflow

pytestmark = pytest.mark.slow

RUNS, APPROVALS = "/factory/runs", "/factory/approvals"
SECRET = "only-those-who-work-at-it-read-this"


def short(topic: str) -> str:
    return topic.rsplit(".", 1)[-1]


def topics(house: House, run_id: UUID) -> list[str]:
    return [short(topic) for topic, _ in outbox(house.system, run_id)]


# ---------------------------------------------------------------- the tables


def columns(model: Any) -> dict[str, tuple[str, bool]]:
    """Each column: its type, and whether it may be null."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, data_type, is_nullable FROM information_schema.columns "
            "WHERE table_name = %s",
            [model._meta.db_table],
        )
        return {name: (kind, nullable == "YES") for name, kind, nullable in cursor.fetchall()}


GUID, TEXT, LONG, INT = "uuid", "character varying", "bigint", ("integer", "smallint")
RUN = {
    "id": GUID, "tenant_id": TEXT, "project_id": GUID, "idempotency_key": TEXT, "workflow_id": TEXT,
    "release_id": GUID, "policy_revision": TEXT, "model_profile_id": TEXT, "state": TEXT, "input_hash": TEXT,
    "snapshot_id": GUID, "requested_by": TEXT, "version": LONG,
}  # fmt: skip


@pytest.mark.requirement("RUN-02", "RUN-23", "JRN-02", "JRN-08", "ARC-01", "ARC-02")
def test_the_tables_have_the_columns_that_were_asked_for() -> None:
    run = columns(Run)
    assert {name: run[name] for name in RUN} == {name: (kind, False) for name, kind in RUN.items()}
    assert [run[name] for name in ("environment_id", "budget_reservation_id")] == [(GUID, True)] * 2
    intent = columns(CancellationIntent)
    assert set(intent) == {"id", "tenant_id", "run_id", "requested_by", "reason", "requested_at"}
    assert not any(nullable for _, nullable in intent.values())
    entry = columns(JournalEntry)
    told = ("sequence", "from_state", "to_state", "cause", "occurred_at", "tenant_id", "stream_id")
    assert {name: entry[name][1] for name in told} == dict.fromkeys(told, False), "its stream is the run's"
    tables = connection.introspection.table_names()
    assert [t for t in tables if "saga" in t or "process_manager" in t] == []


@pytest.mark.requirement("STP-01")
def test_a_step_names_its_place_its_agent_and_its_tries_and_its_class_is_its_gate() -> None:
    """Without a skill the text is empty. What else a gate says is in the pinned definition."""
    step = columns(Step)
    must = {"id": GUID, "run_id": GUID, "tenant_id": TEXT, "agent_id": TEXT, "skill_id": TEXT, "state": TEXT}
    assert {name: step[name] for name in must} == {name: (kind, False) for name, kind in must.items()}
    for name in ("ordinal", "max_attempts"):
        assert step[name][0] in INT
        assert not step[name][1]
    gates = {
        word: Step(side_effect_class=word).gated for word in ("read", "sandbox", "shared-write", "external")
    }
    assert gates == {"read": False, "sandbox": False, "shared-write": True, "external": True}


@pytest.mark.requirement("IDN-09")
def test_there_are_six_roles_and_the_table_of_members_knows_no_other(house: House) -> None:
    six = ["Requester", "Reviewer", "Operator", "WorkspaceAdmin", "PlatformAdmin", "Observer"]
    assert Role.values == six
    with reading(house.system):
        held = {role for roles in Membership.objects.values_list("roles", flat=True) for role in roles}
    assert held == set(six)


@pytest.mark.requirement("APR-33")
def test_the_inbox_is_read_by_its_index(house: House) -> None:
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, ApprovalRequest._meta.db_table)
    assert found["approval_inbox"]["columns"] == ["tenant_id", "state", "expires_at"]
    with reading(house.world.reviewer), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        for state in ("Approved", "Rejected"):  # of so few, what is Pending is all one to the planner
            rows = ApprovalRequest.objects.filter(state=state).order_by("expires_at")
            assert "Index Scan using approval_inbox" in rows.explain()


# ---------------------------------------------------------------- the events and the evidence


@pytest.fixture
def logged() -> Iterator[list[Any]]:
    with structlog.testing.capture_logs() as lines:
        yield lines


@pytest.mark.requirement(
    "EVT-32", "EVT-34", "EVT-35", "JRN-12", "RUN-38", "SEC-08", "SEC-11", "STP-06", "OBS-09", "ARC-26"
)
def test_a_run_leaves_its_events_and_its_evidence_and_no_content(
    house: House, logged: list[Any], capfd: pytest.CaptureFixture[str]
) -> None:
    run_id = house.run("gated", input={"repository": SECRET})
    worker = house.hand()
    work = worker.take()
    asked = worker.ask(work, said(SECRET)).approval_id
    assert asked is not None
    house.decide(asked)
    worker.authorize(work, asked, said(SECRET))
    worker.report(work, output={"found": SECRET}, receipts=[effect(asked, said(SECRET))])
    told = topics(house, run_id)
    assert (told[0], told.count("run-accepted")) == ("run-accepted", 1)
    assert {"attempt-outcome-recorded", "run-state-changed", "run-completed"} <= set(told)
    with reading(house.system):
        entries = list(JournalEntry.objects.filter(stream_id=run_id).order_by("sequence"))
        events = list(OutboxEvent.objects.filter(stream_id=run_id).order_by("sequence", "position"))
        trail = list(AuditEntry.objects.values())
        [step] = Step.objects.filter(run_id=run_id)
        assert [view.id for view in approvals_of_run(run_id)] == [asked]
        kept = str([*JournalEntry.objects.values(), *OutboxEvent.objects.values(), *trail])
    first = entries[0]
    assert (first.sequence, first.from_state, first.to_state) == (1, "None", "Accepted")
    decided = next(n for n, event in enumerate(events) if short(event.topic) == "approval-decided")
    moved = next(e for e in events[decided:] if short(e.topic) == "run-state-changed")
    assert moved.payload["fromState"] == "WaitingForApproval"
    assert moved.correlation_id == events[decided].correlation_id
    assert (step.agent_id, step.skill_id) == ("analyst", "write"), "as the pinned release has them"
    assert {"RequestApproval", "DecideApproval", "TakeAuthorization"} <= {row["action"] for row in trail}
    said_aloud = "".join(capfd.readouterr())
    assert [SECRET in place for place in (kept, str(logged), said_aloud)] == [False] * 3
    for statement in ("UPDATE factory_auditentry SET reason = ''", "DELETE FROM factory_auditentry"):
        with pytest.raises(DatabaseError):
            execute(house.tenant, statement)
    with pytest.raises(DatabaseError):
        execute(house.tenant, f"DELETE FROM runs_run WHERE id = '{run_id}'")


@pytest.mark.requirement("EVT-33", "EVT-42", "RUN-38", "SEC-08")
def test_a_cancellation_is_told_when_it_is_true_and_who_wanted_it_is_kept(house: House) -> None:
    run_id, worker = house.run(), house.hand()
    work = worker.take()
    began = house.row(run_id).created_at
    cancel_run(house.world.operator, run_id=run_id, reason="enough")
    topic, told = outbox(house.system, run_id)[-1]
    assert (short(topic), told["toState"]) == ("run-state-changed", "Cancelling")
    assert "run-cancelled" not in topics(house, run_id)
    worker.report(work, "Cancelled", "cancellation")
    moved = [topic for topic in topics(house, run_id) if topic in ("run-state-changed", "run-cancelled")]
    assert (moved[-2:], moved.count("run-cancelled")) == (["run-state-changed", "run-cancelled"], 1)
    [entry] = audits(house.system, "CancelRun")
    with reading(house.system):
        [intent] = Run.objects.get(pk=run_id).cancellation_intents.all()
    operator = house.world.operator.actor.subject
    assert (entry.actor, entry.outcome, str(run_id) in entry.subject) == (operator, "done", True)
    assert (intent.requested_by, intent.reason) == (operator, "enough")
    assert began < intent.requested_at <= entry.occurred_at


@pytest.mark.requirement("EVT-01", "OBS-10", "DEP-10")
def test_an_event_says_whose_it_is_and_what_it_follows_from(house: House) -> None:
    run_id, worker = house.accept(), house.hand()
    deliver(house)
    work = worker.take()
    worker.report(work, output=1)
    with reading(house.system):
        events = {short(e.topic): e for e in OutboxEvent.objects.filter(stream_id=run_id)}
    accepted, ready, outcome = (
        envelope(events[topic]) for topic in ("run-accepted", "step-ready", "attempt-outcome-recorded")
    )
    whose = {"tenantid": house.tenant, "projectid": str(house.world.project), "runid": str(run_id)}
    step = {"stepid": str(events["step-ready"].step_id), "attemptid": str(work.attempt_id)}
    assert {name: outcome[name] for name in (*whose, *step)} == whose | step
    assert (outcome["source"], outcome["schemaversion"]) == ("/factory/run-control", 1)
    assert ready["correlationid"] == accepted["correlationid"], "what follows belongs to the submission"
    assert ready["causationid"] == accepted["id"], "and names the event that it follows from"
    assert outcome["correlationid"] != accepted["correlationid"], "a report is a request of its own"


@pytest.mark.requirement("SEC-10")
def test_whoever_gives_out_credentials_hears_of_lost_leases_and_cancelled_runs_once(house: House) -> None:
    run_id, work = house.run(), house.hand().take()
    house.let_lapse(work.lease_id)
    LeaseExpiryReconciler().run_once(house.tenant)
    cancel_run(house.world.operator, run_id=run_id, reason="enough")
    wanted = known_consumers()["SecretBrokerService"]
    heard = [(short(topic), told) for topic, told in outbox(house.system, run_id) if topic in wanted]
    assert [topic for topic, _ in heard] == ["lease-expired", "run-cancelled"]
    lost, cancelled = (told for _, told in heard)
    assert (lost["leaseId"], lost["holder"]) == (str(work.lease_id), house.leases(run_id)[0].holder)
    assert cancelled["runId"] == str(run_id)


@pytest.mark.requirement("RUN-21", "EVT-43")
def test_a_message_proves_nothing_and_one_that_nobody_told_is_found(tenant_id: str) -> None:
    house = House(tenant_id)
    run_id, api = house.run(), Api.as_(house.world.requester)
    house.hand().take()
    seen, run = api.get(f"{RUNS}/{run_id}").json(), house.row(run_id)
    forged = {"runId": str(run_id), "tenantId": tenant_id, "outcomeHash": run.input_hash, "outputHash": ""}
    heard = []
    for topic in (states.RUN_COMPLETED, states.RUN_CANCELLED, states.WORKFLOW_RUN_COMPLETED):
        message = Received(uuid4(), topic, forged, run.created_at, run_id, run_id, uuid4())
        for handler in handlers(topic):
            handler.handle(house.system, message)
            heard.append(f"{handler.name}:{message.id}")
    assert (api.get(f"{RUNS}/{run_id}").json(), house.row(run_id).version) == (seen, run.version)
    assert heard
    assert {(found.code, found.subject) for found in violations(tenant_id)} == {
        ("C4", each) for each in heard
    }


@pytest.mark.requirement("APR-19")
def test_a_request_and_the_waiting_of_its_run_are_one_commit(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    before = counts(house.system)
    with monkeypatch.context() as broken:
        broken.setattr(Run, "wait", lambda self, *, at: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            worker.ask(work)
    assert (house.approvals(run_id), house.state(run_id)) == ([], "Running")
    assert counts(house.system) == before
    worker.ask(work)
    assert (len(house.pending(run_id)), house.state(run_id)) == (1, "WaitingForApproval")
    assert topics(house, run_id)[-2:] == ["approval-requested", "run-state-changed"]
    assert violations(house.tenant) == []


# ---------------------------------------------------------------- releases


def bundled() -> dict[str, Any]:
    """A workflow of the name and the input of the bundled one."""
    definition = yaml.safe_load((ROOT / "assessment" / "factory.yaml").read_text())
    [made] = [w for w in definition["workflows"] if w["workflowId"] == "repository-assessment"]
    return workflow("repository-assessment", node("look")) | {"inputSchema": made["inputSchema"]}


@pytest.mark.requirement("RUN-07", "WFE-09", "API-07", "API-08", "ARC-27")
def test_a_newer_release_is_for_later_runs_alone_and_one_is_named_in_one_way(house: House) -> None:
    api, old = Api.as_(house.world.requester), house.run("single")
    changed = workflow("single", node("look"), human("ask", "look")) | {"version": "2.0.0"}
    latest = newer(house, workflows=[changed, bundled()])
    new = house.run("single")
    for run_id, release, nodes in ((old, house.release, ["look"]), (new, latest, ["look", "ask"])):
        assert api.get(f"{RUNS}/{run_id}").json()["releaseId"] == str(release)
        assert [n["key"] for n in api.get(f"{RUNS}/{run_id}/graph").json()["nodes"]] == nodes

    def send(body: dict[str, Any]) -> Any:
        return api.post(RUNS, body, Idempotency_Key=str(uuid4()))

    document = {
        "workflowId": "repository-assessment",
        "releaseAlias": "latest",
        "modelProfileId": "code-agent",
        "input": {"repository": "ConnectSoft.CaseManagement", "revision": "a1b2c3d"},
        "limits": {"maxCostUsd": 12, "maxMinutes": 45},
    }
    by_alias = send(document)
    assert (by_alias.status_code, by_alias.json()["releaseId"]) == (202, str(latest))
    both = document | {"releaseId": str(latest)}
    assert send(both).status_code == 400
    del both["releaseAlias"]
    assert (send(both).status_code, send(both).json()["releaseId"]) == (202, str(latest))


# ---------------------------------------------------------------- the four calls, and what stops them


@pytest.mark.requirement("API-20", "API-21", "IDN-06", "IDN-07", "IDN-08")
def test_a_front_end_submits_reads_decides_and_cancels_with_its_peoples_tokens(house: House) -> None:
    w = house.world
    writer = Api.as_(w.requester, scopes={"factory.runs.write"})
    sent = writer.post(RUNS, house.payload("asked"), Idempotency_Key="one")
    assert sent.status_code == 202
    run_id = UUID(sent.json()["runId"])
    for pin in ("policyRevision", "snapshotId"):
        refused = writer.post(RUNS, house.payload() | {pin: "r9"}, Idempotency_Key=pin)
        assert [fault["pointer"] for fault in problem(refused)["errors"]] == [f"/{pin}"]
    others = Api.as_(w.operator).post(RUNS, house.payload("asked"), Idempotency_Key="two").json()["runId"]
    for each in (run_id, UUID(others)):
        start_run(house.system, run_id=each)
    [view], [other] = house.pending(run_id), house.pending(UUID(others))
    answer = {"decision": "approve", "version": view.version, "proposalHash": view.proposal_hash}
    path, reader = f"{APPROVALS}/{view.id}/decision", Api.as_(w.reviewer, scopes={"factory.approvals.read"})
    assert [a["approvalId"] for a in reader.get(APPROVALS).json()["items"]][:2] == [
        str(other.id),
        str(view.id),
    ]
    for api in (writer, reader):
        assert problem(api.post(path, answer))["type"].endswith("insufficient-scope")
    assert problem(writer.get(APPROVALS))["type"].endswith("insufficient-scope")
    theirs = answer | {"version": other.version, "proposalHash": other.proposal_hash}
    refused = Api.as_(w.requester).post(f"{APPROVALS}/{other.id}/decision", theirs)
    assert problem(refused)["type"].endswith("insufficient-role"), "A scope is no role."
    decider = Api.as_(w.reviewer, scopes={"factory.approvals.decide"})
    assert decider.post(path, answer).status_code == 200
    shown = Api.as_(w.requester, scopes={"factory.runs.read"}).get(f"{RUNS}/{run_id}").json()
    assert (shown["state"], shown["steps"][0]["state"]) == ("Running", "Succeeded")
    stopped = writer.post(f"{RUNS}/{run_id}/cancel", {"reason": "enough"})
    assert (stopped.status_code, stopped.json()["state"]) == (202, "Cancelled")


@pytest.mark.requirement("API-18", "IDN-14", "REG-14", "POL-07", "FLR-09")
def test_without_a_part_that_it_needs_a_submission_is_refused_at_once_and_leaves_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, open_ones = Api.as_(house.world.requester), [house.accept(), house.run()]
    before = counts(house.system)

    def away(*args: Any, **kwargs: Any) -> Any:
        raise OperationalError("server closed the connection unexpectedly")

    def refused(key: str) -> None:
        answer = api.post(RUNS, house.payload(), Idempotency_Key=key)
        assert (answer.status_code, int(answer["Retry-After"]) > 0) == (503, True), answer.content
        assert counts(house.system) == before

    submitting = sys.modules["runs.commands.submit_run"]
    parts = ((submitting.registry, "resolve"), (submitting, "current_policy"))
    for run_id, (module, part) in zip(open_ones, parts, strict=True):
        with monkeypatch.context() as broken:
            broken.setattr(module, part, away)
            refused(part)
            stop = api.post(f"{RUNS}/{run_id}/cancel", {"reason": "enough"})
            assert stop.status_code == 202, "Stopping needs none of it."
        before = counts(house.system)
    with monkeypatch.context() as broken:
        nobody = RemoteKeys("http://127.0.0.1:1/jwks")
        broken.setitem(verifier()._sources, identity_settings().embedded_issuer, nobody)  # type: ignore[arg-type]
        refused("keys")
    assert api.post(RUNS, house.payload(), Idempotency_Key="keys").status_code == 202

    [view] = house.pending(house.run("asked"))
    answer = {"decision": "approve", "version": view.version, "proposalHash": view.proposal_hash}
    reviewer, path = Api.as_(house.world.reviewer), f"{APPROVALS}/{view.id}/decision"
    with monkeypatch.context() as broken:
        broken.setattr(sys.modules["approvals.operations.deciding"], "right_to_decide", away)
        assert reviewer.post(path, answer).status_code == 503
    assert house.pending(view.run_id) == [view], "nothing is decided while nobody can say who may"
    assert reviewer.post(path, answer).status_code == 200
