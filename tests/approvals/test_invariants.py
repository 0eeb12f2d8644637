"""Each invariant is proved by a corruption that it finds, made by a superuser who takes the walls down."""

import time

import psycopg
import pytest

from approvals.invariants import (
    answers_whole,
    asked_again_as_before,
    delegations_in_force,
    duties_separate,
    glass_broken_in_sight,
    policies_gapless,
    policy_pinned,
    proposals_genuine,
    quorums_reached,
    used_as_signed,
    uses_journaled,
)
from approvals.reconcilers import ApprovalExpiryReconciler
from factory.evidence.auditor import Violation
from tests.approvals.test_decisions import decide
from tests.support.delegations import lend
from tests.support.evidence import violations
from tests.support.superuser import tampering, without_walls
from tests.support.world import context_of

pytestmark = pytest.mark.slow

REQUEST, PROPOSAL = "approvals_approvalrequest", "approvals_proposal"
USE, POLICY = "approvals_authorization", "approvals_policyrevision"
USE_COLUMNS = (
    "tenant_id, approval_id, run_id, step_id, attempt_id, lease_id, fencing_token, proposal_hash, "
    "authorized_by, authorized_at"
)

CORRUPTIONS = [
    (
        duties_separate,
        REQUEST,
        ("approval_duties_separate",),
        "UPDATE approvals_approvalrequest SET decided_person = requester_person WHERE id = %(id)s",
    ),
    (
        duties_separate,
        REQUEST,
        (),
        "UPDATE approvals_approvalrequest SET requested_by = decided_by WHERE id = %(id)s",
    ),
    (
        duties_separate,
        REQUEST,
        (),
        "UPDATE approvals_approvalrequest SET author_person = decided_by, decided_person = 'x' "
        "WHERE id = %(id)s",
    ),
    (
        answers_whole,
        REQUEST,
        ("approval_decision_fits_state",),
        "UPDATE approvals_approvalrequest SET decision = 'reject' WHERE id = %(id)s",
    ),
    (
        answers_whole,
        REQUEST,
        ("approval_decided_in_time",),
        "UPDATE approvals_approvalrequest SET decided_at = expires_at WHERE id = %(id)s",
    ),
    (
        proposals_genuine,
        PROPOSAL,
        ("proposal_hash_is_of_content", "proposal_size_is_of_content"),
        'UPDATE approvals_proposal SET content = \'{"kind":"other"}\' FROM approvals_approvalrequest a '
        "WHERE a.proposal_id = approvals_proposal.id AND a.id = %(id)s",
    ),
    (
        proposals_genuine,
        REQUEST,
        (),
        "UPDATE approvals_approvalrequest SET proposal_hash = 'sha256:0' WHERE id = %(id)s",
    ),
    (
        policy_pinned,
        REQUEST,
        (),
        "UPDATE approvals_approvalrequest SET policy_revision = 'r9' WHERE id = %(id)s",
    ),
    (
        policy_pinned,
        REQUEST,
        (),
        "UPDATE approvals_approvalrequest SET approver_roles = '[\"Requester\"]' WHERE id = %(id)s",
    ),
    (
        used_as_signed,
        REQUEST,
        (),
        "UPDATE approvals_approvalrequest SET valid_until = decided_at WHERE id = %(id)s",
    ),
    (
        used_as_signed,
        REQUEST,
        ("approval_decision_fits_state", "approval_validity_of_approved"),
        "UPDATE approvals_approvalrequest SET state = 'Rejected' WHERE id = %(id)s",
    ),
    (
        used_as_signed,
        USE,
        (),
        "UPDATE approvals_authorization SET step_id = run_id WHERE approval_id = %(id)s",
    ),
    (
        used_as_signed,
        USE,
        (),
        "UPDATE approvals_authorization SET proposal_hash = 'sha256:0' WHERE approval_id = %(id)s",
    ),
    (
        used_as_signed,
        USE,
        ("authorization_once",),
        f"INSERT INTO approvals_authorization (id, {USE_COLUMNS}) SELECT gen_random_uuid(), {USE_COLUMNS} "
        "FROM approvals_authorization WHERE approval_id = %(id)s",
    ),
    (uses_journaled, USE, (), "DELETE FROM approvals_authorization WHERE approval_id = %(id)s"),
    (
        policies_gapless,
        POLICY,
        (),
        "UPDATE approvals_policyrevision SET number = 3 FROM approvals_approvalrequest a "
        "WHERE a.policy_id = approvals_policyrevision.id AND a.id = %(id)s",
    ),
]


@pytest.fixture
def used(asker):
    """A request that was approved and used."""
    view = decide(asker.world.reviewer, asker.ask())
    asker.take(view)
    return view


@pytest.mark.parametrize(("rule", "table", "constraints", "corruption"), CORRUPTIONS)
def test_finds_the_corruption(asker, used, rule, table, constraints, corruption):
    with tampering() as cursor:
        assert own_rows(cursor, rule, asker) == []
        without_walls(cursor, table, *constraints)
        cursor.execute(corruption, {"id": used.id})
        assert cursor.rowcount == 1
        assert own_rows(cursor, rule, asker)


def own_rows(cursor, rule, asker) -> list[Violation]:
    return [violation for violation in rule.check(cursor) if violation.tenant_id == asker.world.tenant]


def test_finds_nothing_in_an_honest_tenant(asker, used):
    assert violations(asker.world.tenant) == []


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE approvals_proposal SET content = '{}'",
        "UPDATE approvals_approvalrequest SET proposal_hash = 'x'",
        "UPDATE approvals_approvalrequest SET requester_person = 'x'",
        "UPDATE approvals_approvalrequest SET expires_at = expires_at + interval '1 day'",
        "UPDATE approvals_approvalrequest SET approver_roles = '[]'",
        "UPDATE approvals_authorization SET fencing_token = 1",
        "UPDATE approvals_policyrevision SET document = '{}'",
        "DELETE FROM approvals_authorization",
        "TRUNCATE approvals_policyrevision",
    ],
)
def test_not_even_the_owner_can_change_what_was_asked_and_signed(used, change):
    """With the walls standing, a superuser's own UPDATE is refused by triggers that always fire."""
    with tampering() as cursor, pytest.raises(psycopg.Error):
        cursor.execute(change)


@pytest.mark.parametrize("table", [REQUEST, PROPOSAL, USE, POLICY])
@pytest.mark.parametrize("privilege", ["DELETE", "TRUNCATE"])
def test_the_application_may_not_remove_anything(table, privilege, settings):
    with tampering() as cursor:
        role = f"{settings.FACTORY_ROLE_PREFIX}_app"
        cursor.execute("SELECT has_table_privilege(%s, %s, %s)", [role, table, privilege])
        assert cursor.fetchone() == (False,)


VOTE, LOAN, NOTE = "approvals_vote", "projects_delegation", "factory_auditentry"
OF_THE_QUORUM = [
    (quorums_reached, VOTE, (), "DELETE FROM approvals_vote WHERE approval_id = %(id)s AND acting_for <> ''"),
    (
        quorums_reached,
        VOTE,
        (),
        "UPDATE approvals_vote SET proposal_hash = 'sha256:0' WHERE approval_id = %(id)s AND acting_for = ''",
    ),
    (
        quorums_reached,
        VOTE,
        (),
        "UPDATE approvals_vote v SET person = a.requester_person FROM approvals_approvalrequest a "
        "WHERE a.id = v.approval_id AND a.id = %(id)s AND acting_for = ''",
    ),
    (quorums_reached, REQUEST, (), "UPDATE approvals_approvalrequest SET quorum = 3 WHERE id = %(id)s"),
    (quorums_reached, REQUEST, (), "UPDATE approvals_approvalrequest SET votes = 5 WHERE id = %(id)s"),
    (
        delegations_in_force,
        LOAN,
        ("delegation_role_lendable",),
        "UPDATE projects_delegation d SET role = 'Operator' FROM approvals_vote v "
        "WHERE v.delegation_id = d.id AND v.approval_id = %(id)s",
    ),
    (
        delegations_in_force,
        LOAN,
        ("delegation_has_a_time",),
        "UPDATE projects_delegation d SET expires_at = v.voted_at FROM approvals_vote v "
        "WHERE v.delegation_id = d.id AND v.approval_id = %(id)s",
    ),
    (
        delegations_in_force,
        VOTE,
        (),
        "UPDATE approvals_vote SET acting_for = 'somebody' WHERE approval_id = %(id)s AND acting_for <> ''",
    ),
    (
        duties_separate,
        REQUEST,
        ("approval_duties_separate", "approval_delegated_by_somebody"),
        "UPDATE approvals_approvalrequest SET decided_for = requester_person WHERE id = %(id)s",
    ),
]
OF_THE_GLASS = [
    (
        glass_broken_in_sight,
        REQUEST,
        ("approval_break_glass_has_a_reason",),
        "UPDATE approvals_approvalrequest SET reason = '' WHERE id = %(id)s",
    ),
    (
        glass_broken_in_sight,
        REQUEST,
        (),
        "UPDATE approvals_approvalrequest SET break_glass = false WHERE id = %(id)s",
    ),
    (
        glass_broken_in_sight,
        NOTE,
        (),
        "DELETE FROM factory_auditentry WHERE action = 'BreakGlass' AND subject = 'approval:' || %(id)s",
    ),
]
OF_THE_RENEWAL = [
    (
        asked_again_as_before,
        REQUEST,
        (),
        "UPDATE approvals_approvalrequest SET quorum = 2 WHERE id = %(id)s",
    ),
    (
        asked_again_as_before,
        REQUEST,
        (),
        "UPDATE approvals_approvalrequest SET renews = id WHERE id = %(id)s",
    ),
]


def _found(asker, view, rule, table, constraints, corruption) -> None:
    with tampering() as cursor:
        assert own_rows(cursor, rule, asker) == []
        without_walls(cursor, table, *constraints)
        cursor.execute(corruption, {"id": str(view.id)})
        assert cursor.rowcount == 1
        assert own_rows(cursor, rule, asker)


@pytest.mark.parametrize(("rule", "table", "constraints", "corruption"), OF_THE_QUORUM)
def test_finds_a_quorum_that_was_none(asker, rule, table, constraints, corruption):
    w = asker.world
    lend(w.reviewer, w.observer)
    view = asker.ask(policy=asker.ruled(quorum=2))
    decide(context_of(w.observer.actor.subject, w.tenant, w.project), view)
    decide(w.reviewer2, view)
    _found(asker, view, rule, table, constraints, corruption)


@pytest.mark.parametrize(("rule", "table", "constraints", "corruption"), OF_THE_GLASS)
def test_finds_a_glass_that_broke_unseen(asker, rule, table, constraints, corruption):
    view = decide(asker.world.platform_admin, asker.ask(), break_glass=True, reason="it burns")
    _found(asker, view, rule, table, constraints, corruption)


@pytest.mark.parametrize(("rule", "table", "constraints", "corruption"), OF_THE_RENEWAL)
def test_finds_another_question_in_the_place_of_the_same(
    asker, stage, soon, rule, table, constraints, corruption
):
    asker.ask(policy=asker.ruled(onExpiry="re-request"))
    time.sleep(soon)
    ApprovalExpiryReconciler().run_once(asker.world.tenant)
    _found(asker, stage.asked_again[0][1], rule, table, constraints, corruption)
