"""Messages go with the events; what waits for somebody stays a while, and the notice that they were told."""

import pytest
from django.db import connection

from factory.evidence.retention import purge
from factory.kernel.tenancy import bound
from tests.notifications.support import handle, notices, older, rows, send
from tests.support.approvals import asking
from tests.support.evidence import violations

pytestmark = pytest.mark.slow


def test_what_was_told_a_month_ago_goes(own_database, tenant_id, mails):
    asker = asking(tenant_id)
    asker.ask()
    handle(tenant_id)
    first, *others = rows(asker.house)
    older(tenant_id, 31)
    with bound(asker.house), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE notifications_notification SET set_aside_at = now(), error = 'no' WHERE id = %s",
            [first.id],
        )
    assert purge().messages == 0, "nothing has been said yet"
    send(tenant_id)
    assert purge().messages == len(others) == 3
    assert [row.id for row in rows(asker.house)] == [first.id], "it is so old, but not so long set aside"
    older(tenant_id, 31)
    assert purge().messages == 1
    handle(tenant_id)
    assert notices(asker.house) == ["requested"]
    assert violations(tenant_id) == []
