"""The inbox: it begins with what waits for its reader, and every view of it is a link that can be kept."""

from uuid import uuid4

import pytest
from django.urls import reverse

from approvals.commands import decide_approval
from tests.console.test_pages import signed_in
from tests.support.approvals import Asking, asking, staged
from tests.support.client import Client

INBOX = reverse("admin:approvals_approvalrequest_changelist")


@pytest.fixture
def asked(tenant_id: str) -> Asking:
    return asking(tenant_id)


def shown(client: Client, query: str = "") -> str:
    answer = client.get(INBOX + query)
    assert answer.status_code == 200
    return str(answer.content.decode())


@pytest.mark.requirement("APR-30", "ARC-20")
def test_shows_first_what_waits_for_its_reader_and_says_so(asked: Asking) -> None:
    with staged():
        view = asked.ask(summary="commit the waiting one")
        over = asked.ask(summary="commit the other one", step_id=uuid4())
        decide_approval(
            asked.world.reviewer2,
            approval_id=over.id,
            decision="reject",
            version=over.version,
            proposal_hash=over.proposal_hash,
        )
    reviewer, requester = signed_in(asked.world.reviewer), signed_in(asked.world.requester)
    page = shown(reviewer)
    assert "commit the waiting one" in page
    assert "commit the other one" not in page
    assert "Only what you may decide at this moment." in page
    assert reverse("admin:approvals_approvalrequest_change", args=[view.id]) in page
    for order in ("", "&order=oldest"):
        found = shown(reviewer, f"?whose=all&q=WAITING commit{order}")
        assert "commit the waiting one" in found, order
        assert "commit the other one" not in found, order
    nobody = shown(reviewer, "?whose=all&q=nobody asked this")
    assert "Nothing matches" in nobody
    assert "whole of a name" not in nobody, "Words of the newest questions are looked through"
    assert f'href="{INBOX}?whose=all">Clear the search' in nobody
    nothing = shown(requester)
    assert "commit the waiting one" not in nothing
    assert "Nothing waits for you." in nothing
    assert "commit the waiting one" in shown(requester, "?whose=pending")
    for query in ("?whose=closed", "?state=Rejected", "?whose=all&action_class=shared-write", "?q=other"):
        assert "commit the other one" in shown(reviewer, query), query
    assert [('id="chosen-act"' in shown(reviewer, f"?whose={view}")) for view in ("pending", "closed")] == [
        True,
        False,
    ], "Rows are chosen where something can be decided"
    for who in (asked.world.observer, asked.world.auditor, asked.world.finance):
        assert 'id="chosen-act"' not in shown(signed_in(who), "?whose=pending"), "and by who could decide"
    assert f'href="{INBOX}?action_class=spend&amp;whose=closed"' in shown(reviewer, "?action_class=spend")
