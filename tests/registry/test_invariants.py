"""Each of this app's invariants finds the damage that it is there for."""

import pytest

from tests.support.corruption import found_by, walls_down
from tests.support.evidence import violations

pytestmark = pytest.mark.slow

TABLES = (
    "registry_asset",
    "registry_release",
    "registry_closureentry",
    "registry_closure",
    "registry_evaluationrecord",
    "registry_aliasmove",
    "registry_alias",
    "registry_assetworkflow",
    "registry_releaseblob",
    "approvals_approvalrequest",
)


@pytest.fixture
def published(r):
    r.release_id = r.published()
    assert violations(r.w.tenant) == []
    return r


DAMAGE = [
    (
        "R1",
        "UPDATE registry_closureentry SET size = size + 1 WHERE tenant_id = %(t)s AND kind = 'skill'",
    ),
    ("R1", "DELETE FROM registry_closureentry WHERE tenant_id = %(t)s AND kind = 'skill'"),
    ("R1", "UPDATE registry_release SET commit = repeat('b', 40) WHERE tenant_id = %(t)s"),
    ("R1", "UPDATE registry_closure SET hash = 'sha256:' || repeat('0', 64) WHERE tenant_id = %(t)s"),
    ("R2", "UPDATE registry_releaseblob SET content = 'x' WHERE tenant_id = %(t)s"),
    ("R2", "DELETE FROM registry_releaseblob WHERE tenant_id = %(t)s"),
    ("R3", "UPDATE registry_evaluationrecord SET verdict = 'fail' WHERE tenant_id = %(t)s"),
    ("R3", "UPDATE registry_evaluationrecord SET scores = '{\"found\": 0.5}' WHERE tenant_id = %(t)s"),
    ("R3", "UPDATE registry_evaluationrecord SET scores = '{}' WHERE tenant_id = %(t)s"),
    ("R3", "UPDATE registry_release SET evaluation_id = NULL WHERE tenant_id = %(t)s"),
    (
        "R3",
        "UPDATE registry_evaluationrecord SET release_hash = 'sha256:' || repeat('0', 64)",
    ),
    ("R4", "UPDATE registry_release SET author = %(reviewer)s WHERE tenant_id = %(t)s"),
    ("R4", "UPDATE registry_release SET author_person = %(reviewer)s WHERE tenant_id = %(t)s"),
    ("R4", "UPDATE registry_release SET approval_id = NULL WHERE tenant_id = %(t)s"),
    ("R4", "UPDATE approvals_approvalrequest SET state = 'Rejected' WHERE tenant_id = %(t)s"),
    ("R4", "UPDATE approvals_approvalrequest SET subject_id = gen_random_uuid() WHERE tenant_id = %(t)s"),
    ("R5", "UPDATE registry_alias SET version = 2 WHERE tenant_id = %(t)s"),
    ("R5", "DELETE FROM registry_aliasmove WHERE tenant_id = %(t)s"),
    ("R5", "UPDATE registry_aliasmove SET release_id = gen_random_uuid() WHERE tenant_id = %(t)s"),
    ("R6", "UPDATE registry_release SET published_at = NULL WHERE tenant_id = %(t)s"),
    ("R6", "UPDATE registry_release SET state = 'Deprecated' WHERE tenant_id = %(t)s"),
    ("R6", "UPDATE registry_aliasmove SET moved_at = moved_at - interval '1 day' WHERE tenant_id = %(t)s"),
    ("R7", "DELETE FROM registry_assetworkflow WHERE tenant_id = %(t)s"),
    ("R7", "UPDATE registry_assetworkflow SET asset_id = gen_random_uuid() WHERE tenant_id = %(t)s"),
]


@pytest.mark.parametrize(("code", "sql"), DAMAGE)
def test_finds_the_damage(published, code, sql):
    with walls_down(*TABLES) as cursor:
        assert found_by(code, cursor, published.w.tenant) == []
        cursor.execute(sql, {"t": published.w.tenant, "reviewer": published.w.reviewer.actor.subject})
        assert cursor.rowcount >= 1
        assert found_by(code, cursor, published.w.tenant)
