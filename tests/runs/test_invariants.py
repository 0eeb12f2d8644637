"""Each invariant finds the corruption that it is there for."""

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from tests.support.corruption import found_by, walls_down
from tests.support.receipts import costing, effect
from tests.support.running import House

pytestmark = pytest.mark.slow

Damage = Callable[[Any, House, dict[str, Any]], None]


@pytest.fixture(scope="module")
def done() -> tuple[House, dict[str, Any]]:
    """One house with a completed run, a gated one, and one at work."""
    house = House(f"t-{uuid4().hex[:16]}")
    worker = house.hand(slots=8)
    completed = house.run("single")
    work = worker.take()
    paid = costing("1")
    worker.report(work, output=1, receipts=[paid, paid | {"details": {"other": True}}])
    gated = house.run("gated")
    gate = worker.take()
    asked = worker.ask(gate)
    house.decide(asked.approval_id)
    worker.authorize(gate, asked.approval_id)
    worker.report(gate, output=1, receipts=[effect(asked.approval_id)])
    answered = house.run("asked")
    house.decide(house.pending(answered)[0].id)
    at_work = house.run("single")
    held, *_ = sorted(worker.poll(), key=lambda work: work.snapshot["stepKey"] != "look")
    worker.acquire(held)
    asked_now = house.run("word")
    fanned = house.run("modules")
    scan = next(work for work in worker.poll() if work.snapshot["stepKey"] == "scan")
    worker.acquire(scan)
    worker.report(scan, output={"modules": [1, 2, 3]})
    return house, {
        "completed": completed,
        "gated": gated,
        "at_work": at_work,
        "work": work,
        "gate": gate,
        "held": held,
        "step": house.steps(completed)["look"].id,
        "answered": house.steps(answered)["ask"].id,
        "asked": house.steps(asked_now)["first"].id,
        "fanned": fanned,
    }


def _copy(cursor: Any, table: str, key: Any, **changes: Any) -> None:
    """A second row like the first, with other values."""
    cursor.execute(f"SELECT to_jsonb(t) FROM {table} t WHERE id = %s", [key])
    row = cursor.fetchone()[0]
    row = (json.loads(row) if isinstance(row, str) else row) | changes
    cursor.execute(
        f"INSERT INTO {table} SELECT * FROM jsonb_populate_record(null::{table}, %s::jsonb)",
        [json.dumps(row, default=str)],
    )


def _another_open_attempt(cursor: Any, house: House, at: dict[str, Any]) -> None:
    _copy(cursor, "runs_attempt", at["held"].attempt_id, id="01900000-0000-7000-8000-000000000001", number=9)


def _lease_gone(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute("DELETE FROM runs_lease WHERE id = %s", [at["held"].lease_id])


def _lower_token(cursor: Any, house: House, at: dict[str, Any]) -> None:
    other = {"id": "01900000-0000-7000-8000-000000000002", "fencing_token": 1, "state": "Expired"}
    _copy(cursor, "runs_lease", at["work"].lease_id, **other, offered_at="2999-01-01T00:00:00Z")


def _second_outcome(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute(
        "SELECT id FROM factory_journalentry WHERE entity_id = %s AND to_state = 'Succeeded'",
        [at["work"].attempt_id],
    )
    other = {"id": "01900000-0000-7000-8000-000000000003", "sequence": 999, "to_state": "Failed"}
    _copy(cursor, "factory_journalentry", cursor.fetchone()[0], **other)


def _outcome_without_hash(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute("UPDATE runs_attempt SET outcome_hash = '' WHERE id = %s", [at["work"].attempt_id])


def _lapsed_long_ago(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute(
        "UPDATE runs_lease SET expires_at = now() - interval '1 day' WHERE id = %s", [at["held"].lease_id]
    )


def _success_taken_back(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute("UPDATE runs_attempt SET state = 'Failed' WHERE id = %s", [at["work"].attempt_id])


def _completed_too_early(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute("UPDATE runs_run SET state = 'Completed' WHERE id = %s", [at["at_work"]])


def _waits_for_nobody(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute("UPDATE runs_run SET state = 'WaitingForApproval' WHERE id = %s", [at["at_work"]])


def _effect_of_another_proposal(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute(
        "UPDATE runs_receipt SET proposal_hash = 'sha256:other' WHERE attempt_id = %s",
        [at["gate"].attempt_id],
    )


def _denied_in_a_word(cursor: Any, house: House, at: dict[str, Any]) -> None:
    """The word "false" denies nothing: only the value does."""
    _effect_of_another_proposal(cursor, house, at)
    cursor.execute(
        """UPDATE runs_receipt SET content = content || '{"details": {"tookPlace": "false"}}' """
        "WHERE attempt_id = %s",
        [at["gate"].attempt_id],
    )


def _second_effect_of_one_authorization(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute(
        "SELECT id FROM runs_receipt WHERE attempt_id = %s AND kind = 'effect'", [at["gate"].attempt_id]
    )
    other = {"id": "01900000-0000-7000-8000-000000000021", "receipt_id": "another"}
    _copy(cursor, "runs_receipt", cursor.fetchone()[0], **other)


def _another_release(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute("UPDATE runs_run SET release_hash = 'sha256:other' WHERE id = %s", [at["completed"]])


def _another_snapshot(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute(
        "UPDATE runs_snapshot SET content = content || '{\"input\": 1}' WHERE id = "
        "(SELECT snapshot_id FROM runs_run WHERE id = %s)",
        [at["completed"]],
    )


def _decree_forgotten(cursor: Any, house: House, at: dict[str, Any]) -> None:
    """Revoked an hour ago, and nobody told the run."""
    cursor.execute(
        "UPDATE registry_release SET state = 'Revoked', in_flight = 'block', "
        "revoked_at = now() - interval '1 hour' WHERE id = %s",
        [house.release],
    )


def _decree_over_what_it_needs_forgotten(cursor: Any, house: House, at: dict[str, Any]) -> None:
    other: dict[str, Any] = {
        "id": "01900000-0000-7000-8000-000000000004",
        "semver": "0.0.9",
        "closure_id": None,
    }
    other |= {"state": "Revoked", "in_flight": "cancel", "revoked_at": "2020-01-01T00:00:00Z"}
    _copy(cursor, "registry_release", house.release, **other)
    cursor.execute(
        "INSERT INTO registry_closuredependency (id, tenant_id, closure_id, release_id) "
        "SELECT %s, tenant_id, closure_id, %s FROM registry_release WHERE id = %s",
        ["01900000-0000-7000-8000-000000000005", other["id"], house.release],
    )


def _switch_thrown_and_forgotten(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute(
        "UPDATE projects_project SET killing_since = now() - interval '1 hour' WHERE id = %s",
        [house.world.project],
    )


def _yes_taken_back(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute(
        "UPDATE approvals_approvalrequest SET state = 'Stale' WHERE step_id = %s", [at["answered"]]
    )


def _question_gone(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute(
        "UPDATE approvals_approvalrequest SET state = 'Cancelled' WHERE step_id = %s", [at["asked"]]
    )


def _worker_instead_of_a_person(cursor: Any, house: House, at: dict[str, Any]) -> None:
    other = {"id": "01900000-0000-7000-8000-000000000004", "step_id": at["answered"]}
    _copy(cursor, "runs_attempt", at["work"].attempt_id, **other)


def _instance_lost(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute("DELETE FROM runs_step WHERE run_id = %s AND node_key = 'module[1]'", [at["fanned"]])


def _money_that_nobody_approved(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute("UPDATE usage_reservation SET extended = 1 WHERE run_id = %s", [at["at_work"]])


def _receipt_gone(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute("DELETE FROM runs_receipt WHERE run_id = %s", [at["completed"]])


def _usage_gone(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute("DELETE FROM usage_usagerecord WHERE run_id = %s", [at["completed"]])


def _usage_of_another_call(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute("UPDATE usage_usagerecord SET name = 'another' WHERE run_id = %s", [at["completed"]])


def _conflict_with_another(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute("UPDATE runs_refusedreceipt SET provider = 'x' WHERE run_id = %s", [at["completed"]])


def _refused_receipt_gone(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute("DELETE FROM runs_refusedreceipt WHERE run_id = %s", [at["completed"]])


def _usage_of_another_release(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute("UPDATE usage_usagesum SET release_id = id WHERE run_id = %s", [at["completed"]])


def _usage_of_another_workflow(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute("UPDATE usage_usagesum SET workflow_id = 'x' WHERE run_id = %s", [at["completed"]])


def _done_and_not_over(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute(
        "UPDATE runs_run SET state = 'Running', finished_at = NULL, output_hash = '' WHERE id = %s",
        [at["completed"]],
    )


def _asked_in_vain(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute(
        "UPDATE runs_step SET state = 'Succeeded', finished_at = clock_timestamp() WHERE id = %s",
        [at["asked"]],
    )


def _leased_without_end(cursor: Any, house: House, at: dict[str, Any]) -> None:
    for n in range(3):
        other = {"id": f"01900000-0000-7000-8000-00000000001{n}", "fencing_token": n, "state": "Expired"}
        _copy(cursor, "runs_lease", at["held"].lease_id, **other, closed_at="2999-01-01T00:00:00Z")


def _run_changed(change: str) -> Damage:
    """The clock of the run at work is set otherwise."""

    def damage(cursor: Any, house: House, at: dict[str, Any]) -> None:
        cursor.execute(f"UPDATE runs_run SET {change} WHERE id = %s", [at["at_work"]])

    return damage


def _doubt_unnoticed(cursor: Any, house: House, at: dict[str, Any]) -> None:
    cursor.execute("UPDATE runs_step SET attention = 'uncertain' WHERE run_id = %s", [at["at_work"]])


CORRUPTIONS: dict[str, Damage] = {
    "B1": _another_open_attempt,
    "B1b": _lease_gone,
    "B2": _lower_token,
    "B3": _second_outcome,
    "B4": _outcome_without_hash,
    "B5": _lapsed_long_ago,
    "B6": _success_taken_back,
    "B7": _completed_too_early,
    "B8": _waits_for_nobody,
    "B11": _decree_forgotten,
    "B11 dependency": _decree_over_what_it_needs_forgotten,
    "B12": _switch_thrown_and_forgotten,
    "B9 yes": _yes_taken_back,
    "B9 question": _question_gone,
    "B9 attempt": _worker_instead_of_a_person,
    "B10": _instance_lost,
    "B16 done": _done_and_not_over,
    "B16 asked": _asked_in_vain,
    "B17": _leased_without_end,
    "B18 stands": _run_changed("clock_because = '{frozen}'"),
    "B18 runs": _run_changed("frozen_at = clock_timestamp()"),
    "B18 doubt": _doubt_unnoticed,
    "B19 early": _run_changed("deadline_at = deadline_at - interval '1 second'"),
    "B19 late": _run_changed("deadline_at = deadline_at + interval '1 hour'"),
    "B19 ahead": _run_changed("clock_since = clock_timestamp() + interval '1 hour'"),
    "D4": _effect_of_another_proposal,
    "D4 word": _denied_in_a_word,
    "D4 shared": _second_effect_of_one_authorization,
    "E2e": _money_that_nobody_approved,
    "E4f release": _usage_of_another_release,
    "E4f workflow": _usage_of_another_workflow,
    "E4g receipt": _receipt_gone,
    "E4g usage": _usage_gone,
    "E4g call": _usage_of_another_call,
    "E4h": _conflict_with_another,
    "E4i receipt": _refused_receipt_gone,
    "E4i usage": _usage_gone,
    "F2": _another_release,
    "F2b": _another_snapshot,
}
"""By the invariant's code, and a word where there is more than one way to break it."""
TABLES = (
    "runs_run",
    "runs_step",
    "runs_attempt",
    "runs_lease",
    "runs_receipt",
    "runs_refusedreceipt",
    "runs_resolution",
    "runs_snapshot",
    "factory_journalentry",
    "approvals_approvalrequest",
    "approvals_authorization",
    "approvals_proposal",
    "usage_reservation",
    "usage_usagerecord",
    "usage_usagesum",
    "registry_release",
    "registry_closure",
    "registry_closuredependency",
    "projects_project",
)
"""What the checks read: the tables' owner is behind the tenant wall like everybody else."""


@pytest.mark.parametrize("damage", sorted(CORRUPTIONS))
def test_finds_the_corruption(damage: str, done: tuple[House, dict[str, Any]]) -> None:
    (house, at), code = done, damage.partition(" ")[0]
    with walls_down(*TABLES) as cursor:
        before = found_by(code, cursor, house.tenant)
        CORRUPTIONS[damage](cursor, house, at)
        after = found_by(code, cursor, house.tenant)
    assert (before, bool(after)) == ([], True)
