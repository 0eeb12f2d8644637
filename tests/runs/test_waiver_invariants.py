"""Each invariant about templates and waivers finds the corruption that it is there for."""

from typing import Any
from uuid import uuid4

import pytest

from tests.runs.test_waivers import asked
from tests.support.corruption import found_by, walls_down
from tests.support.running import House
from tests.support.waivers import run_from, template, waiver

REQUEST, USE, WAIVER = "approvals_approvalrequest", "approvals_authorization", "approvals_waiver"
RUN, TEMPLATE, STEP, VOTE = "runs_run", "runs_runtemplate", "runs_step", "approvals_vote"


@pytest.fixture(scope="module")
def used() -> tuple[House, dict[str, Any]]:
    """A house in which one write was approved in advance, and done."""
    house = House(f"t-{uuid4().hex[:16]}")
    kind = template(house)
    given = waiver(house, kind)
    run_id = run_from(house, kind)
    hand, work, _, view = asked(house, run_id)
    taken = hand.authorize(work, view.id)
    hand.report(work)
    ids: dict[str, Any] = {
        "run": run_id,
        "template": kind,
        "waiver": given,
        "approval": view.id,
        "use": taken.id,
    }
    ids |= {"step": work.step_id, "other": uuid4()}
    return house, ids | {"requester": house.world.requester.actor.subject}


PROPOSAL = "approvals_proposal"
ASKED = "(SELECT proposal_id FROM approvals_approvalrequest WHERE subject_id = %(waiver)s)"
UNTIL = "convert_to(replace(convert_from(content, 'UTF8'), '\"until\":\"20', '\"until\":\"MM'), 'UTF8')"
CORRUPTIONS = [
    ("D10", REQUEST, "decided_by = 'somebody' WHERE id = %(approval)s"),
    ("D10", REQUEST, "waiver_id = NULL WHERE id = %(approval)s"),
    ("D10", REQUEST, "release_id = %(other)s WHERE id = %(approval)s"),
    ("D10", REQUEST, "environment_id = %(other)s WHERE id = %(approval)s"),
    ("D10", REQUEST, "action_class = 'external' WHERE id = %(approval)s"),
    ("D10", REQUEST, "quorum = 2 WHERE id = %(approval)s"),
    ("D10", REQUEST, "approver_roles = '[\"WorkspaceAdmin\"]' WHERE id = %(approval)s"),
    (
        "D10",
        WAIVER,
        "requested_by = %(requester)s WHERE id = %(waiver)s",
    ),
    (
        "D10",
        WAIVER,
        "deciders = ARRAY[%(requester)s] WHERE id = %(waiver)s",
    ),
    ("D10", WAIVER, "expires_at = decided_at WHERE id = %(waiver)s"),
    ("D10b", WAIVER, "expires_at = expires_at + interval '1 hour' WHERE id = %(waiver)s"),
    ("D10b", WAIVER, "requested_at = expires_at - interval '31 days' WHERE id = %(waiver)s"),
    ("D10b", WAIVER, "template_id = %(other)s WHERE id = %(waiver)s"),
    ("D10b", WAIVER, "environment_ids = environment_ids || %(other)s WHERE id = %(waiver)s"),
    ("D10b", WAIVER, "approval_id = %(other)s WHERE id = %(waiver)s"),
    ("D10b", WAIVER, "deciders = ARRAY['somebody'] WHERE id = %(waiver)s"),
    ("D10b", WAIVER, "decided_by = 'somebody' WHERE id = %(waiver)s"),
    ("D10b", REQUEST, "state = 'Rejected' WHERE subject_id = %(waiver)s"),
    ("D10b", REQUEST, "break_glass = true WHERE subject_id = %(waiver)s"),
    ("D10b", PROPOSAL, f"content = 'no words' WHERE id = {ASKED}"),
    ("D10b", PROPOSAL, f"content = {UNTIL} WHERE id = {ASKED}"),
    ("D12", WAIVER, "decided_by = 'service:robot' WHERE id = %(waiver)s"),
    ("D12", WAIVER, "deciders = deciders || 'service:robot'::varchar WHERE id = %(waiver)s"),
    ("D11", USE, "waiver_id = NULL WHERE id = %(use)s"),
    ("D11", WAIVER, "ended_at = decided_at WHERE id = %(waiver)s"),
    ("B13", RUN, 'limits = \'{"maxCostUsd": 900, "maxMinutes": 30}\' WHERE id = %(run)s'),
    ("B13", RUN, "template_id = NULL WHERE id = %(run)s"),
    ("B13", TEMPLATE, "retired_at = created_at WHERE id = %(template)s"),
    ("B14", RUN, "environment_id = NULL WHERE id = %(run)s"),
    ("B14", RUN, "template_id = NULL WHERE id = %(run)s"),
    ("B14", STEP, "side_effect_class = 'external' WHERE id = %(step)s"),
    ("B15", TEMPLATE, 'limits = \'{"maxCostUsd": 900, "maxMinutes": 30}\' WHERE id = %(template)s'),
    ("B15", TEMPLATE, "content_hash = 'sha256:0' WHERE id = %(template)s"),
]


CODES = ("D10", "D10b", "D11", "D12", "B13", "B14", "B15")
TABLES = (REQUEST, USE, WAIVER, RUN, TEMPLATE, STEP, VOTE, PROPOSAL, "runs_snapshot")


@pytest.mark.slow
@pytest.mark.requirement("LTR-03")
def test_finds_each_corruption(used: tuple[House, dict[str, Any]]) -> None:
    """All of them in one transaction, each undone before the next."""
    house, ids = used
    with walls_down(*TABLES) as cursor:
        assert [found_by(code, cursor, house.tenant) for code in CODES] == [[]] * len(CODES)
        for code, table, change in CORRUPTIONS:
            cursor.execute("SAVEPOINT sound")
            cursor.execute(f"UPDATE {table} x SET {change}", ids)
            assert cursor.rowcount == 1, change
            assert found_by(code, cursor, house.tenant), (code, table, change)
            cursor.execute("ROLLBACK TO SAVEPOINT sound")
