"""The run's page: it says where the run stands, and its acts are the commands."""

import re
from uuid import UUID

import pytest
from django.urls import reverse

from factory.console.show import brief
from factory.messaging.webhooks.commands import create_webhook
from factory.messaging.webhooks.signing import new_secret
from runs.commands import cancel_run
from tests.console.test_pages import signed_in
from tests.support.evidence import audits
from tests.support.receipts import effect, receipt
from tests.support.running import House
from tests.support.world import second_world


@pytest.fixture
def house(tenant_id: str) -> House:
    return House(tenant_id)


def page_of(run_id: object) -> str:
    return reverse("admin:runs_run_change", args=[run_id])


def test_the_decision_page_tells_the_run_so_far(house: House) -> None:
    house.run("gated")
    worker = house.hand()
    asked = worker.ask(worker.take(), park=True)
    url = reverse("admin:approvals_approvalrequest_change", args=[asked.approval_id])
    text = signed_in(house.world.reviewer).get(url).content.decode()
    for said in ("The run so far: gated", "was accepted and pinned", "0.00 of 5.00 USD"):
        assert said in text


@pytest.mark.parametrize(("kind", "again"), [("single", False), ("gated", True)])
def test_a_doubt_claims_no_more_than_is_known(house: House, kind: str, again: bool) -> None:
    """Who reports a doubt, and whoever was restored, has not fallen silent, and may have asked nobody."""
    run_id = house.run(kind)
    worker = house.hand()
    worker.report(worker.take(), "Uncertain", "uncertain", reason="the line was cut")
    text = signed_in(house.world.operator).get(page_of(run_id)).content.decode()
    assert "An Operator settles" in text
    assert "fell silent" not in text
    assert ("asks for approval again" in text) is again
    assert "Next depends on what the Operator says" in text
    assert "The step becomes Succeeded, and the run is Completed." in text
    assert "Next: the run is Completed" not in text


def test_who_settled_a_doubt_how_and_by_what_evidence_stands_at_the_attempt(house: House) -> None:
    run_id, worker = house.run("gated"), house.hand()
    worker.report(worker.take(), "Uncertain", "uncertain", reason="the line was cut")
    step = house.steps(run_id)["publish"]
    operator = signed_in(house.world.operator)
    url = reverse("admin:runs_settle", args=[run_id, step.id])
    found = "<b>The branch</b> is there\u202e, I looked."
    sent = {"version": step.version, "resolution": "effect-happened", "evidence": found}
    page = operator.post(url, sent, follow=True).content.decode()
    assert f"Settled by {house.world.operator.actor.subject}: the effect happened" in page
    assert "&lt;b&gt;The branch&lt;/b&gt; is there⟨U+202E⟩, I looked." in page
    without = signed_in(house.world.observer).get(page_of(run_id)).content.decode()
    assert "the effect happened" in without
    assert "The branch" not in without
    assert "Its evidence is for holders of the payloads grant" in without


def test_the_list_cuts_a_reason_at_a_word_its_file_tells_all_and_nothing_used_costs_nothing(
    house: House,
) -> None:
    client, reason = signed_in(house.world.operator), " ".join(["<i>because</i>"] * 20)
    cancel_run(house.world.operator, run_id=house.run("single"), reason=reason)
    runs = reverse("admin:runs_run_changelist")
    page = client.get(runs).content.decode()
    assert "&lt;i&gt;because&lt;/i&gt;…</span>" in page
    assert "not known" not in page
    file = b"".join(client.get(f"{runs}?format=csv").streaming_content).decode()
    assert f",{reason},0.00 USD" in file
    worker, unknown = house.hand(), receipt(kind="model", provider="nobody", quantities=None)
    house.run("single")
    worker.report(worker.take(), output={}, receipts=[unknown])
    assert "not known" in client.get(runs).content.decode()


def test_a_violation_looks_the_same_in_the_list_as_on_the_first_page(house: House) -> None:
    house.run("gated")
    worker = house.hand()
    worker.report(worker.take(), output={"said": "done"}, receipts=[effect(None)])
    client, steps = signed_in(house.world.operator), reverse("admin:runs_step_changelist")
    page = client.get(steps).content.decode()
    assert '<span class="fc-badge bad"><span aria-hidden="true">✕</span>Violation</span>' in page
    assert re.search(r'title="The effect [0-9a-f-]{36} happened[^"]*">The effect .{0,30}…[0-9a-f]{8}<', page)
    offered = re.findall(r'<option value="([^"]*)"', page.split('name="attention"')[1].split("</select>")[0])
    assert offered == ["", "uncertain", "violation", "late-effect"]
    assert "It acted without" in client.get(f"{steps}?attention=violation").content.decode()
    assert "It acted without" not in client.get(f"{steps}?attention=uncertain").content.decode()


@pytest.mark.requirement("RUN-14", "RUN-22")
def test_cancels_with_a_reason_and_keeps_who_asked(house: House) -> None:
    run_id = house.run("single")
    client = signed_in(house.world.operator)
    url = reverse("admin:runs_cancel", args=[run_id])
    opened = client.get(url)
    assert (opened.status_code, opened["Allow"]) == (405, "POST")
    assert "only when its button is pressed" in opened.content.decode()
    empty = client.post(url, {"reason": " "}, follow=True)
    assert "needs a reason" in empty.content.decode()
    assert house.state(run_id) == "Accepted"
    told = client.post(url, {"reason": "<b>wrong branch</b>"}, follow=True).content.decode()
    assert house.state(run_id) == "Cancelled"
    assert "&lt;b&gt;wrong branch&lt;/b&gt;" in told
    assert "<b>wrong branch</b>" not in told
    assert {a.channel for a in audits(house.system, "CancelRun")} == {"admin"}


def test_who_may_not_cancel_gets_no_button_and_no_way(house: House) -> None:
    run_id = house.run("single")
    client = signed_in(house.world.reviewer)
    assert "Cancel the run" not in client.get(page_of(run_id)).content.decode()
    client.post(reverse("admin:runs_cancel", args=[run_id]), {"reason": "no"}, follow=True)
    assert house.state(run_id) == "Accepted"


@pytest.mark.requirement("IDN-15")
def test_another_tenants_run_does_not_exist(house: House, tenant_id: str) -> None:
    run_id = house.run("single")
    client = signed_in(second_world(tenant_id).operator)
    assert client.get(page_of(run_id)).status_code == 404
    assert client.post(reverse("admin:runs_cancel", args=[run_id]), {"reason": "mine"}).status_code == 404
    assert house.state(run_id) == "Accepted"


def test_output_is_for_holders_of_the_payloads_grant(house: House) -> None:
    run_id = house.run("single")
    worker = house.hand()
    worker.report(worker.take(), output={"found": "the-secret-marker"})
    assert "the-secret-marker" in signed_in(house.world.operator).get(page_of(run_id)).content.decode()
    assert "the-secret-marker" not in signed_in(house.world.reviewer).get(page_of(run_id)).content.decode()


def test_a_step_that_needs_an_operator_keeps_its_output_from_those_without_the_grant(house: House) -> None:
    run_id = house.run("gated")
    worker = house.hand()
    work = worker.take()
    worker.report(work, output={"said": "the words of the output"}, receipts=[effect(None)])
    step = next(step for step in house.steps(run_id).values() if step.attention)
    page = signed_in(house.world.operator).get(reverse("admin:runs_step_change", args=[step.id]))
    text = page.content.decode()
    assert page.status_code == 200
    assert "It acted without an authorization" in text
    assert "<dt>Output</dt>" not in text


def test_a_question_shows_what_was_done_before_it_and_nothing_where_that_is_nothing(tenant_id: str) -> None:
    house = House(tenant_id)
    first, worker = house.run("asked"), house.hand()
    after = house.run("twice")
    worker.report(worker.take(), output={"found": "<b>two</b> leaks"})
    reviewer = signed_in(house.world.reviewer)

    def page(run_id: UUID) -> str:
        [request, *_] = house.pending(run_id)
        url = reverse("admin:approvals_approvalrequest_change", args=[request.id])
        return str(reviewer.get(url).content.decode())

    alone, later = page(first), page(after)
    assert "ask?" in alone
    assert "predecessors" not in alone
    assert "Predecessors" not in alone
    for words in ("What was done before", "scan", "&lt;b&gt;two&lt;/b&gt; leaks"):
        assert words in later
    assert "predecessors" not in later


def test_what_was_short_is_not_told_as_nothing() -> None:
    told = [brief(seconds) for seconds in (0, 0.004, 0.31, 9.94, 12.7)]
    assert told == ["0.0 s", "under 0.1 s", "0.3 s", "9.9 s", "12 s"]


def test_a_run_that_is_stopping_is_not_offered_to_be_cancelled_again(house: House) -> None:
    run_id, worker = house.run("single"), house.hand()
    worker.take()
    cancel_run(house.world.operator, run_id=run_id, reason="no more")
    client = signed_in(house.world.operator)
    stopping = client.get(page_of(run_id)).content.decode()
    assert "Cancel this run" not in stopping
    assert "it fails" not in stopping, "its deadline ends nothing any more"
    leases = client.get(reverse("admin:runs_lease_changelist")).content.decode()
    assert "the run is Cancelled once nobody holds any of it" in leases
    assert "workers hold 1, and are offered 0 more" in leases
    runs = reverse("admin:runs_run_changelist")
    chosen = {"action": "cancel_selected", "_selected_action": [str(run_id)], "index": "0"}
    page = client.post(runs, chosen, follow=True).content.decode()
    assert "Cancel 0 of 1 run<" in page
    assert "It was asked to stop before, and is stopping." in page


def test_what_lies_behind_a_run_has_tabs_and_its_chains_are_recomputed(house: House) -> None:
    run_id = house.run("single")
    worker = house.hand()
    worker.report(worker.take(), output={"found": 1}, receipts=[receipt()])
    operator = signed_in(house.world.operator)

    def tab(key: str) -> str:
        return str(operator.get(page_of(run_id), {"tab": key}).content.decode())

    assert "Intact" in tab("journal")
    assert "Submitted" in tab("journal")
    assert "run-control.runs.v1.run-accepted" in tab("events")
    assert "factory-tools/git-log" in tab("usage")
    assert "SubmitRun" in tab("audit")
    assert "Questions to people" in tab("none of them")


def test_where_events_go_is_for_those_who_may_see_the_receivers(house: House) -> None:
    """The address of a receiver often is its password."""
    secret = "https://hooks.example.test/T0/B0/the-secret-part"
    create_webhook(
        house.world.workspace_admin, url=secret, topics=[], consumer="", description="", secret=new_secret()
    )
    at = page_of(house.run("single"))
    admin, observer = (
        signed_in(who).get(at, {"tab": "events"}).content.decode()
        for who in (house.world.workspace_admin, house.world.observer)
    )
    for page in (admin, observer):
        assert "run-control.runs.v1.run-accepted" in page
    assert "the-secret-part" in admin
    assert "the-secret-part" not in observer
    assert "receivers" not in observer.lower()
