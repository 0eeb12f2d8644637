from uuid import UUID

import pytest
from django.urls import reverse

from approvals.models import ApprovalRequest
from approvals.selectors import approval, mine, refusal_for
from approvals.states import ApprovalState
from approvals.subjects import why_unanswerable
from factory.kernel.context import Context
from factory.kernel.tenancy import reading
from tests.console.test_pages import signed_in
from tests.support.acts import needed, revoke
from tests.support.approvals import let_expire
from tests.support.running import House
from tests.support.waivers import ask_waiver, end_now, template
from tests.support.workflows import MANIFEST, node, workflow

pytestmark = pytest.mark.slow
INBOX = reverse("admin:approvals_approvalrequest_changelist")


@pytest.fixture
def house(tenant_id: str) -> House:
    return House(tenant_id)


def asked_of(house: House, release_id: UUID) -> UUID:
    with reading(house.system):
        found = ApprovalRequest.objects.get(subject_id=release_id)
    return UUID(str(found.pk))


def waiting(house: House, asked: UUID) -> bool:
    """Whether it waits for somebody; who that is, agrees with the page of each request for each person."""
    w = house.world
    people = (w.reviewer, w.workspace_admin, w.platform_admin, w.observer)
    told = [_waits_for(member) for member in people]
    return any(asked in one for one in told)


def _waits_for(member: Context) -> set[UUID]:
    with reading(member):
        told = set(mine(member).values_list("pk", flat=True))
        pending = ApprovalRequest.objects.filter(state=ApprovalState.PENDING)
        views = [approval(key) for key in pending.values_list("pk", flat=True)]
        by_page = {
            view.id for view in views if refusal_for(member, view) is None and not why_unanswerable(view)
        }
    assert told == by_page
    return told


def test_questions_of_a_run_whose_release_was_taken_back_wait_for_nobody(house: House) -> None:
    house.run("gated")
    worker = house.hand()
    asked = worker.ask(worker.take(), summary="commit the report", park=True).approval_id
    money = house.run("single", limits={"maxCostUsd": 300, "maxMinutes": 30})
    [spend] = house.pending(money)
    assert waiting(house, asked)
    assert waiting(house, spend.id)
    reviewer = signed_in(house.world.reviewer)
    assert "commit the report" in reviewer.get(INBOX).content.decode()
    revoke(house, "drain")
    assert not waiting(house, asked)
    assert not waiting(house, spend.id)
    assert "commit the report" not in reviewer.get(INBOX).content.decode()
    assert "commit the report" in reviewer.get(f"{INBOX}?whose=pending").content.decode()
    first = reviewer.get("/admin/").context["first"]
    assert [need.title for need in first.needs] == []


def test_a_publication_that_would_be_refused_waits_for_nobody(house: House) -> None:
    base = needed(house)
    flows = [workflow("wanted-by-two", node("look"))]
    needing = house.candidate(
        MANIFEST | {"version": "2.0.0", "dependencies": ["base@1.0.0"], "workflows": flows}, commit="d" * 40
    )
    left, right = (
        house.candidate(MANIFEST | {"asset": name, "workflows": flows}, commit="e" * 40)
        for name in ("left", "right")
    )
    requests = [asked_of(house, one) for one in (needing, left, right)]
    assert [waiting(house, one) for one in requests] == [True, True, True]
    house.decide(requests[1])
    assert [waiting(house, one) for one in requests] == [False, False, False], "The workflow is left's now"
    own = house.candidate(MANIFEST | {"version": "2.1.0", "dependencies": ["base@1.0.0"]}, commit="f" * 40)
    assert waiting(house, asked_of(house, own))
    revoke(house, "drain", release_id=base)
    assert not waiting(house, asked_of(house, own))


def test_a_waiver_whose_end_has_come_waits_for_nobody_and_its_page_says_why(house: House) -> None:
    asked = ask_waiver(house, template(house))
    assert waiting(house, asked["approval"])
    end_now(asked["waiver"])
    assert not waiting(house, asked["approval"])
    page = reverse("admin:approvals_approvalrequest_change", args=[asked["approval"]])
    text = signed_in(house.world.reviewer).get(page).content.decode()
    assert "The waiver would have ended at" in text
    assert "No answer would be taken as things stand" in text


def test_what_is_over_waits_for_nobody_before_its_end_is_recorded(house: House) -> None:
    house.run("gated")
    worker = house.hand()
    asked = worker.ask(worker.take(), park=True).approval_id
    let_expire(asked)
    with reading(house.world.reviewer):
        assert not mine(house.world.reviewer).exists()
        assert approval(asked).is_pending


def test_several_of_different_kinds_say_which_is_rejected_how(house: House) -> None:
    house.run("gated")
    worker = house.hand()
    step = worker.ask(worker.take(), summary="commit the report", park=True).approval_id
    waiver = ask_waiver(house, template(house))["approval"]
    reviewer = signed_in(house.world.reviewer)

    def told(*chosen: UUID) -> str:
        sent = {"action": "reject_selected", "_selected_action": [str(key) for key in chosen], "index": "0"}
        return reviewer.post(f"{INBOX}?whose=pending", sent, follow=True).content.decode()

    both = told(step, waiver)
    assert "A waiver: Nothing is allowed in advance" in both
    assert "A question of a run: Nothing is done. The run fails" in both
    assert "A waiver:" not in told(waiver), "One kind needs no name"
    assert "no environment" not in reviewer.get(f"{INBOX}?q=approve shared writes").content.decode()
