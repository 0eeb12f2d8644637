"""What the application's own role can not do, whatever its code says."""

from typing import Any

import pytest
from django.db import DatabaseError, connection

from approvals import selectors
from approvals.commands import decide_approval
from approvals.errors import ProposalCorrupted
from approvals.models import ApprovalRequest
from factory.kernel.context import Actor, Context
from factory.kernel.errors import Forbidden
from factory.kernel.permissions import SCOPES
from factory.kernel.tenancy import TenantNotSet, bound, reading
from factory.messaging.relay.delivery import drain
from factory.messaging.relay.destinations import Handlers
from tests.approvals.test_decisions import decide
from tests.approvals.test_publishing import revisions
from tests.support.api import Api
from tests.support.evidence import violations
from tests.support.superuser import swapped_proposal, tampering
from tests.support.world import second_world, world

pytestmark = pytest.mark.slow

PINNED = [
    "proposal_hash",
    "requested_by",
    "requester_person",
    "author_person",
    "approver_roles",
    "expires_at",
]
MOVES = ["state", "version", "decision", "decided_by", "decided_at", "reason", "closed_at", "valid_until"]
WITH_SEVERAL = ["votes", "decided_for", "delegation_id", "break_glass", "passed_over"]
YES = (
    "state = 'Approved', decision = 'approve', decided_by = 'x', decided_at = requested_at, "
    "closed_at = requested_at"
)


@pytest.mark.parametrize("column", PINNED)
def test_what_was_asked_is_pinned(asker, column):
    view = asker.ask()
    with pytest.raises(DatabaseError, match="permission denied"), bound(asker.house):
        write(f"UPDATE approvals_approvalrequest SET {column} = {column} WHERE id = %s", view.id)


def write(statement: str, *params: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)


def test_only_the_answers_columns_can_be_written(settings):
    with tampering() as cursor:
        cursor.execute(
            "SELECT a.attname FROM pg_attribute a WHERE a.attrelid = 'approvals_approvalrequest'::regclass "
            "AND a.attnum > 0 AND has_column_privilege(%s, a.attrelid, a.attnum, 'UPDATE')",
            [f"{settings.FACTORY_ROLE_PREFIX}_app"],
        )
        assert {name for (name,) in cursor.fetchall()} == {*MOVES, "decided_person", *WITH_SEVERAL}


@pytest.mark.parametrize("table", ["proposal", "authorization", "policyrevision"])
def test_evidence_is_only_added(asker, table):
    asker.ask()
    for statement in (
        f"UPDATE approvals_{table} SET tenant_id = tenant_id",
        f"DELETE FROM approvals_{table}",
    ):
        with pytest.raises(DatabaseError, match="permission denied"), bound(asker.house):
            write(statement)


def test_an_answer_that_no_command_recorded_is_refused(asker):
    view = asker.ask()
    with pytest.raises(DatabaseError, match="without a journal entry"), bound(asker.house):
        write(
            f"UPDATE approvals_approvalrequest SET {YES}, decided_person = 'x' WHERE id = %s",
            view.id,
        )
    assert asker.view(view.id) == view


def test_nobody_is_written_as_deciding_on_their_own(asker):
    view = asker.ask()
    with pytest.raises(DatabaseError, match="approval_duties_separate"), bound(asker.house):
        write(
            f"UPDATE approvals_approvalrequest SET {YES}, decided_person = requester_person WHERE id = %s",
            view.id,
        )


def test_nothing_rests_on_a_proposal_that_was_swapped(asker):
    """Whoever gets past every wall has gained nothing: it is neither shown, nor decided on, nor done."""
    view, approved = asker.ask(), decide(asker.world.reviewer, asker.again().ask())
    with swapped_proposal(view.id, b'{"kind":"other"}'):
        with pytest.raises(ProposalCorrupted):
            decide(asker.world.reviewer, view)
        with pytest.raises(ProposalCorrupted), reading(asker.house):
            selectors.proposal(view.id)
        assert Api.as_(asker.world.reviewer).get(f"/factory/approvals/{view.id}").status_code == 409
        assert "D2" in {found.code for found in violations(asker.world.tenant)}
    step = {"step_id": approved.step_id, "attempt_id": approved.attempt_id}
    with swapped_proposal(approved.id, b'{"kind":"other"}'), pytest.raises(ProposalCorrupted):
        asker.take(approved, **step)
    assert asker.view(view.id) == view
    assert asker.take(approved, **step).proposal_hash == view.proposal_hash
    assert violations(asker.world.tenant) == []


def test_a_tenant_sees_its_own_requests_alone(asker, tenant_id):
    asker.ask()
    stranger = second_world(tenant_id)
    with reading(stranger.system()):
        assert ApprovalRequest.objects.count() == 0
    with pytest.raises(TenantNotSet):
        ApprovalRequest.objects.count()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM approvals_approvalrequest")
        assert cursor.fetchone() == (0,)


def test_a_worker_decides_nothing(asker):
    view = asker.ask()
    worker = Context("", None, Actor("worker-1", "worker", scopes=frozenset(SCOPES), pool="default"))
    with pytest.raises(Forbidden):
        decide_approval(
            worker, approval_id=view.id, decision="approve", version=1, proposal_hash=view.proposal_hash
        )
    assert asker.view(view.id) == view


def test_onboarding_brings_the_platforms_policy(tenant_id):
    house = world(tenant_id).system()
    drain(Handlers(), tenant_id)
    assert revisions(house) == ["r1"]
    drain(Handlers(), tenant_id)
    assert revisions(house) == ["r1"]
    assert violations(tenant_id) == []
