"""Each of this app's invariants finds the damage that it is there for."""

import pytest

from projects.commands import suspend_project
from tests.support.corruption import found_by, walls_down
from tests.support.evidence import violations
from tests.support.world import world

pytestmark = pytest.mark.slow

TABLES = ("projects_membership", "projects_serviceaccount", "projects_project", "projects_suspension")


@pytest.fixture
def w(tenant_id):
    return world(tenant_id)


def damage(w, code, sql, **values):
    with walls_down(*TABLES) as cursor:
        assert found_by(code, cursor, w.tenant) == []
        cursor.execute(sql, {"tenant": w.tenant, **values})
        assert cursor.rowcount >= 1
        return found_by(code, cursor, w.tenant)


@pytest.mark.parametrize(
    "change", ["roles = '{King}'", "roles = '{}'", "roles = roles || '{king}'", "grants = '{gold}'"]
)
def test_finds_a_role_or_grant_that_nobody_knows(w, change):
    member = w.memberships["reviewer"]
    found = damage(w, "P1", f"UPDATE projects_membership SET {change} WHERE id = %(id)s", id=member)
    assert [subject for subject, _ in found] == [f"membership:{member}"]


def test_finds_a_second_active_membership(w):
    subject = w.reviewer.actor.subject
    found = damage(
        w,
        "P2",
        "UPDATE projects_membership SET subject = %(subject)s, person = %(subject)s WHERE id = %(id)s",
        subject=subject,
        id=w.memberships["reviewer2"],
    )
    assert found == [(subject, "2 active memberships of one scope")]


def test_finds_a_second_active_membership_in_the_whole_tenant(w):
    subject = w.tenant_admin.actor.subject
    found = damage(
        w,
        "P2",
        "UPDATE projects_membership SET subject = %(subject)s, person = %(subject)s"
        " WHERE tenant_id = %(tenant)s AND project_id IS NULL",
        subject=subject,
    )
    assert found == [(subject, "2 active memberships of one scope")]


def test_finds_a_service_account_whose_owner_is_gone(w):
    remove = "UPDATE projects_membership SET state = 'Removed' WHERE id = %(id)s"
    found = damage(w, "P3", remove, id=w.memberships["requester"])
    assert [subject for subject, _ in found] == [w.service.actor.subject]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE projects_membership SET state = 'Removed' WHERE id = %(id)s",
        "UPDATE projects_serviceaccount SET state = 'Revoked' WHERE tenant_id = %(tenant)s",
        "UPDATE projects_serviceaccount SET owner = 'someone' WHERE tenant_id = %(tenant)s",
        "DELETE FROM projects_serviceaccount WHERE tenant_id = %(tenant)s",
    ],
)
def test_finds_a_service_account_that_nobody_answers_for(w, sql):
    assert len(damage(w, "P4", sql, id=w.memberships["requester"])) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM projects_suspension WHERE tenant_id = %(tenant)s",
        "UPDATE projects_suspension SET resumed_at = suspended_at WHERE tenant_id = %(tenant)s",
        "UPDATE projects_project SET state = 'Active' WHERE tenant_id = %(tenant)s",
    ],
)
def test_finds_a_suspension_without_its_row_and_a_row_without_its_suspension(w, sql):
    suspend_project(w.workspace_admin, project_id=w.project, reason="an audit")
    assert [subject for subject, _ in damage(w, "P5", sql)] == [f"project:{w.project}"]


def test_finds_nothing_in_a_sound_world_and_leaves_it_sound(w):
    damage(w, "P1", "UPDATE projects_membership SET roles = '{}' WHERE tenant_id = %(tenant)s")
    assert violations(w.tenant) == []
