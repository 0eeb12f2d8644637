"""Each invariant finds the damage that no path of the product can do."""

import pytest
from django.db import ProgrammingError, connection

from factory.kernel.tenancy import bound
from tests.approvals.test_decisions import decide
from tests.notifications.support import gotify, handle, remind, time_passes
from tests.support.corruption import found_by, walls_down
from tests.support.evidence import violations

pytestmark = pytest.mark.slow

REQUEST, NOTICE = "approvals_approvalrequest", "notifications_notice"
MESSAGE, CHANNEL = "notifications_notification", "notifications_channel"

DAMAGE = {
    "their own request": (
        "N1",
        f"UPDATE {MESSAGE} m SET subject = a.requester_person FROM {NOTICE} n JOIN {REQUEST} a "
        "ON a.id = n.approval_id WHERE n.id = m.notice_id AND n.kind = 'requested' "
        "AND n.tenant_id = %(tenant)s",
    ),
    "another's channel": (
        "N2",
        f"UPDATE {CHANNEL} SET subject = 'somebody' WHERE tenant_id = %(tenant)s",
    ),
    "out of its project": (
        "N2",
        f"UPDATE {MESSAGE} SET project_id = NULL WHERE tenant_id = %(tenant)s",
    ),
    "a notice twice": (
        "N2",
        f"INSERT INTO {NOTICE} SELECT tenant_id, gen_random_uuid(), kind, project_id, made_at, remind_at, "
        f"reminded_at, approval_id FROM {NOTICE} WHERE tenant_id = %(tenant)s AND kind = 'requested'",
    ),
    "a message twice": (
        "N2",
        f"UPDATE {MESSAGE} SET subject = 'x', channel_id = NULL WHERE tenant_id = %(tenant)s",
    ),
    "too early": (
        "N3",
        f"UPDATE {NOTICE} SET made_at = made_at - interval '2 days' WHERE kind = 'expiring' "
        "AND tenant_id = %(tenant)s",
    ),
    "too late": (
        "N3",
        f"UPDATE {NOTICE} SET made_at = made_at + interval '1 day' WHERE kind = 'expiring' "
        "AND tenant_id = %(tenant)s",
    ),
}


def test_the_auditor_finds_each_damage(asker, chat):
    """One world for all of them: each is rolled back."""
    w = asker.world
    gotify(w.reviewer, chat)
    view = asker.ask()
    handle(w.tenant)
    time_passes(view.id, hours=54.5)
    remind(w.tenant)
    decide(w.reviewer, asker.view(view.id))
    handle(w.tenant)
    assert violations(w.tenant) == []
    for name, (code, statement) in DAMAGE.items():
        with walls_down(REQUEST, NOTICE, MESSAGE, CHANNEL) as owner:
            assert found_by(code, owner, w.tenant) == []
            owner.execute(statement, {"tenant": w.tenant})
            assert owner.rowcount, name
            assert found_by(code, owner, w.tenant), name


READDRESSED = [
    (MESSAGE, "subject = 'me'"),
    (MESSAGE, "notice_id = gen_random_uuid()"),
    (NOTICE, "kind = 'test'"),
    (NOTICE, "remind_at = NULL"),
    (CHANNEL, "subject = 'me'"),
    (CHANNEL, "service = 'slack'"),
]


def test_the_product_itself_cannot_readdress(asker):
    for table, change in READDRESSED:
        with pytest.raises(ProgrammingError, match="permission denied"), bound(asker.house):
            connection.cursor().execute(f"UPDATE {table} SET {change}")
