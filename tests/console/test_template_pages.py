"""The pages of run templates and waivers: made, asked for, decided, used, seen and ended by people."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from runs.commands import start_run
from tests.console.test_pages import signed_in
from tests.runs.test_waivers import asked
from tests.support.evidence import violations
from tests.support.running import House
from tests.support.waivers import shown
from tests.support.workflows import PROFILE


@pytest.fixture
def house(tenant_id: str) -> House:
    return House(tenant_id)


def text(answer: Any) -> str:
    return str(answer.content.decode())


def made(client: Client, page: str, *args: Any, **form: Any) -> UUID:
    """Send a form; the id of what its answer leads to."""
    answer = client.post(reverse(f"admin:{page}", args=args), form)
    assert answer.status_code == 302, text(answer)
    return UUID(answer["Location"].split("/")[-3])


@pytest.mark.requirement("LTR-03")
def test_from_a_template_to_a_write_that_nobody_was_asked_about(house: House) -> None:
    w = house.world
    operator, admin, reviewer = map(signed_in, (w.operator, w.workspace_admin, w.reviewer))
    new = {"name": "nightly", "workflowId": "gated", "modelProfileId": PROFILE, "maxCostUsd": "5"}
    refused = operator.post(reverse("admin:runs_new_template"), new | {"inputSchema": "{"})
    assert (refused.status_code, "/inputSchema" in text(refused)) == (400, True)
    kind = made(operator, "runs_new_template", **new, maxMinutes="30", description="<b>every</b> night")
    page = reverse("admin:runs_runtemplate_change", args=[kind])
    assert "&lt;b&gt;every&lt;/b&gt; night" in text(operator.get(page))
    assert "Ask for a waiver" not in text(reviewer.get(page))
    assert reviewer.get(reverse("admin:runs_request_waiver", args=[kind])).status_code == 403

    until = (datetime.now(UTC) + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M")
    form = {"releaseId": str(house.release), "environment": [str(w.environment)], "until": until}
    assert text(admin.get(reverse("admin:runs_request_waiver", args=[kind]))).count("checkbox") == 2
    given = made(admin, "runs_request_waiver", kind, **form, reason="the same every night")
    asked_for = text(reviewer.get(reverse("admin:approvals_waiver_change", args=[given])))
    assert "who asked for it; who gives it is added" in asked_for
    withdraw = text(reviewer.get(reverse("admin:approvals_revoke_waiver", args=[given])))
    assert "Its request leaves the inbox." in withdraw
    assert "asked about again" not in withdraw, "it has allowed nothing yet"
    approval_id = shown(house, given).approval_id
    decision = text(reviewer.get(reverse("admin:approvals_approvalrequest_change", args=[approval_id])))
    assert "except runs of who asked for or decided it" in decision
    house.decide(approval_id)

    requester = signed_in(w.requester)
    form_page = text(requester.get(reverse("admin:runs_from_template", args=[kind])))
    assert "asks for repository (text). It also takes go (true or false)." in form_page
    assert "&quot;additionalProperties&quot;: false" in form_page
    either = '{"type": "object", "anyOf": [{"required": ["repository"]}, {"required": ["go"]}]}'
    odd = made(
        operator, "runs_new_template", **new | {"name": "either", "inputSchema": either}, maxMinutes="30"
    )
    told = text(requester.get(reverse("admin:runs_from_template", args=[odd])))
    assert "requires no field by name alone" in told
    assert "requires no field: {} may do" not in told
    assert text(operator.get(reverse("admin:runs_new_template"))).count("(may be left empty)") == 2
    run_form = {"input": '{"repository": "x"}', "environmentId": str(w.environment), "key": "one"}
    run_id = made(requester, "runs_from_template", kind, **run_form)
    assert made(requester, "runs_from_template", kind, **run_form) == run_id, "sent twice, it is one run"
    start_run(house.system, run_id=run_id)
    hand, work, _, view = asked(house, run_id)
    hand.authorize(work, view.id)
    waiver_page = reverse("admin:approvals_waiver_change", args=[given])
    assert view.summary in text(reviewer.get(waiver_page))
    for way in (
        reverse("admin:runs_run_change", args=[run_id]),
        reverse("admin:approvals_approvalrequest_change", args=[view.id]),
    ):
        assert waiver_page in text(reviewer.get(way)), way
    inbox = reverse("admin:approvals_approvalrequest_changelist")
    assert view.summary in text(reviewer.get(f"{inbox}?whose=waived"))

    revoke = reverse("admin:approvals_revoke_waiver", args=[given])
    assert signed_in(w.observer).get(revoke).status_code == 403
    assert "that was not begun yet is asked about again" in text(reviewer.get(revoke))
    assert reviewer.post(revoke, {"reason": ""}).status_code == 400
    reviewer.post(revoke, {"reason": "the report has changed"})
    assert "the report has changed" in text(reviewer.get(waiver_page))
    operator.post(reverse("admin:runs_retire_template", args=[kind]), {"reason": "over"})
    assert "Retired" in text(operator.get(page))
    assert violations(house.tenant) == []
