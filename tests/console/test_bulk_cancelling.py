"""Several runs are cancelled from the list, with an outcome for each row; a project's acts ask before."""

import pytest
from django.urls import reverse

from tests.console.test_pages import signed_in
from tests.support.acts import deliver
from tests.support.evidence import audits
from tests.support.running import House


@pytest.mark.requirement("RUN-14", "RUN-33")
def test_each_row_has_its_own_outcome(tenant_id: str) -> None:
    house = House(tenant_id)
    idle, done, theirs = house.run(), house.run(), House(f"{tenant_id}-b").run()
    worker = house.hand()
    for work in worker.poll():
        if work.run_id == done:
            worker.acquire(work)
            worker.report(work, output=1)
    client = signed_in(house.world.operator)
    chosen = {"action": "cancel_selected", "_selected_action": [str(idle), str(done)], "index": "0"}
    asked = client.post(reverse("admin:runs_run_changelist"), chosen, follow=True)
    assert "Cancel 1 of 2 runs" in asked.content.decode()
    assert "1 left out" in asked.content.decode()
    assert "It is over already." in asked.content.decode()
    assert house.state(idle) == "Running"
    sent = {"run": [str(idle), str(done), str(theirs)], "reason": "<b>wrong</b>"}
    long = sent | {"reason": "x" * 2001}
    refused = client.post(reverse("admin:runs_cancel_many"), long)
    assert refused.status_code == 400
    assert "too long by 1 of its 2,001 characters: at most 2,000 fit." in refused.content.decode()
    assert f">{'x' * 2001}</textarea>" in refused.content.decode(), "nothing of it is lost"
    one = client.post(reverse("admin:runs_cancel", args=[idle]), {"reason": "z" * 2001}, follow=True)
    assert "too long by 1 of its 2,001 characters" in one.content.decode()
    assert f">{'z' * 2001}</textarea>" in one.content.decode(), "nor where the run's own page asks"
    assert house.state(idle) == "Running"
    done_page = client.post(reverse("admin:runs_cancel_many"), sent)["Location"]
    text = client.get(done_page).content.decode()
    assert "Cancelled; it was Running." in text
    assert "The run has ended" in text
    assert str(theirs) not in text
    assert (house.state(idle), house.state(done)) == ("Cancelled", "Completed")
    assert client.get(done_page).content.decode().count("Cancelled; it was Running.") == 1, "read again"
    observer, runs = signed_in(house.world.observer), reverse("admin:runs_run_changelist")
    assert observer.get(done_page).status_code == 404, "kept for who did it"
    asking = ["cancel_selected" in each.get(runs).content.decode() for each in (client, observer)]
    assert asking == [True, False], "Who could cancel none is not asked to choose"
    refused = observer.post(reverse("admin:runs_cancel_many"), sent, follow=True)
    assert "Refused." in refused.content.decode()


def test_acts_say_what_they_reach_before_they_are_done(tenant_id: str) -> None:
    house = House(tenant_id)
    runs = [house.run(), house.run()]
    client = signed_in(house.world.workspace_admin)
    page = reverse("admin:projects_project_change", args=[house.world.project])
    release = reverse("admin:registry_release_change", args=[house.release])
    assert "Throw the kill switch" in client.get(page).content.decode()
    assert "Revoke" in client.get(release).content.decode()
    revoke = reverse("admin:registry_revoke", args=[house.release])
    text = client.get(revoke).content.decode()
    two = '<h2>Open runs that rest on it</h2><span class="fc-soft">2</span>'
    for said in (two, "block: they fail at once"):
        assert said in text
    assert client.post(revoke, {"in_flight": "no", "reason": "leaks"}).status_code == 422
    assert signed_in(house.world.reviewer).get(revoke).status_code == 403
    kill = reverse("admin:projects_kill", args=[house.world.project])
    assert "<dd>2</dd>" in client.get(kill).content.decode()
    assert client.post(kill, {"reason": " "}).status_code == 400
    client.post(kill, {"reason": "it goes wild"})
    deliver(house)
    assert {house.state(run_id) for run_id in runs} == {"Cancelled"}
    [audit] = audits(house.system, "KillProject")
    assert audit.channel == "admin"
    client.post(reverse("admin:projects_resume", args=[house.world.project]), {"reason": "over"})
    client.post(revoke, {"in_flight": "block", "reason": "leaks"})
    assert "Revoked" in client.get(release).content.decode()


def test_a_form_without_rows_or_without_an_act_is_told_what_it_lacks(tenant_id: str) -> None:
    house = House(tenant_id)
    run_id = str(house.accept("single"))
    client, runs = signed_in(house.world.operator), reverse("admin:runs_run_changelist")
    for sent, said in (
        ({"action": "cancel_selected"}, "No row was chosen. Choose some by their boxes, then go on."),
        ({"action": "", "_selected_action": [run_id]}, "It was not chosen what to do with the rows."),
    ):
        answer = client.post(f"{runs}?order=oldest", {**sent, "index": "0"}, follow=True)
        assert answer.redirect_chain == [(f"{runs}?order=oldest", 302)]
        assert said in answer.content.decode()
