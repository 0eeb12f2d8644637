"""Several waivers about the same: asked for once, told apart when one ends, ended with their release."""

from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from approvals.errors import WaiverPending
from approvals.selectors import approval
from factory.kernel.tenancy import reading
from projects.models import Project
from registry.commands import revoke_release
from tests.console.test_pages import signed_in
from tests.support.api import Api
from tests.support.evidence import journal, violations
from tests.support.running import House
from tests.support.waivers import ask_waiver, shown, template, waiver

pytestmark = pytest.mark.slow


@pytest.fixture
def house(tenant_id: str) -> House:
    return House(tenant_id)


@pytest.mark.requirement("LTR-03")
def test_the_same_is_asked_for_once_and_the_end_of_one_names_the_other(house: House) -> None:
    w, kind = house.world, template(house)
    both = [w.environment, w.environments["production"]]
    first = ask_waiver(house, kind, environment_ids=both)
    with pytest.raises(WaiverPending, match="withdraw that one first") as refused:
        ask_waiver(house, kind, environment_ids=both[::-1], hours=3)
    assert refused.value.extra["waiverId"] == str(first["waiver"])
    assert refused.value.extra["approvalId"] == str(first["approval"])
    house.decide(first["approval"])
    second = waiver(house, kind)
    reviewer = Api.as_(w.reviewer)
    told = reviewer.get(f"/factory/waivers/{first['waiver']}").json()
    assert [one["waiverId"] for one in told["othersInForce"]] == [str(second)]
    page = signed_in(w.reviewer).get(reverse("admin:approvals_revoke_waiver", args=[second]))
    text = page.content.decode()
    assert f"Another waiver stays in force, given by {w.reviewer.actor.subject} for " in text
    assert str(first["waiver"]) not in text.partition('id="content"')[2]
    ended = reviewer.post(f"/factory/waivers/{second}/revoke", {"reason": "one is enough"}).json()
    assert (ended["state"], [one["waiverId"] for one in ended["othersInForce"]]) == (
        "Revoked",
        [str(first["waiver"])],
    )
    ended = reviewer.post(f"/factory/waivers/{first['waiver']}/revoke", {"reason": "over"}).json()
    assert (ended["state"], ended["othersInForce"]) == ("Revoked", [])


@pytest.mark.requirement("LTR-03")
def test_waivers_end_with_their_release(house: House) -> None:
    """Nothing could rest on them any more, so they are not listed as if something could."""
    w, kind = house.world, template(house)
    given = waiver(house, kind)
    asked = ask_waiver(house, kind, environment_ids=[w.environments["production"]])
    revoke_release(w.operator, release_id=house.release, in_flight="drain", reason="it leaks")
    for one in (given, asked["waiver"]):
        view = shown(house, one)
        assert (view.state, view.end_reason) == ("Revoked", "The release was revoked: it leaks")
        assert journal(house.system, one)[-1][1:] == ("Revoked", "ReleaseEnded")
    with reading(house.system):
        assert approval(asked["approval"]).state == "Cancelled"
    assert violations(house.tenant) == []


def at_the_terminal(house: House, *words: str) -> str:
    told = StringIO()
    with reading(house.system):
        slug = Project.objects.get(pk=house.world.project).slug
    who = ["--tenant", house.tenant, "--project", slug, "--as", house.world.observer.actor.subject]
    call_command("policy", *who, "explain", *words, stdout=told)
    return told.getvalue()


@pytest.mark.requirement("LTR-03")
def test_who_asks_what_would_happen_hears_of_waivers(house: House) -> None:
    w, kind = house.world, template(house)
    api = Api.as_(w.observer)

    def explained(action_class: str = "shared-write", **more: Any) -> Any:
        body = {"actionClass": action_class, "environment": "staging", **more}
        return api.post("/factory/policy-revisions/evaluate", body).json()

    assert explained()["inAdvance"] == "No waiver serves: none is in force for staging."
    given: UUID = waiver(house, kind)
    told = explained()
    assert "ask nobody" in told["inAdvance"]
    [one] = told["waivers"]
    assert (one["waiverId"], one["template"], one["serves"]) == (str(given), "nightly-gated", True)
    assert one["neverFor"] == sorted([w.reviewer.actor.subject, w.workspace_admin.actor.subject])
    told = explained(requestedBy=w.reviewer.actor.subject)
    assert told["inAdvance"] == "No waiver serves, although there is one in force."
    assert "never serves runs of who" in told["waivers"][0]["whyNot"]
    assert explained(environment=None)["inAdvance"].startswith("No waiver serves: one names the env")
    assert explained("external")["inAdvance"].startswith("No waiver serves: external is never")
    assert (explained("read")["inAdvance"], explained("read")["waivers"]) == ("", [])

    unknown = api.post("/factory/policy-revisions/evaluate", {"actionClass": "read", "environment": "moon"})
    assert (unknown.status_code, unknown.json()["errors"][0]["pointer"]) == (400, "/environment")
    assert "production, staging" in unknown.json()["detail"]

    said = at_the_terminal(house, "shared-write", "--environment", "staging")
    assert f"waiver {given} of nightly-gated" in said
    with pytest.raises(CommandError, match="There is no environment 'moon' here"):
        at_the_terminal(house, "shared-write", "--environment", "moon")
    where = reverse("admin:approvals_policy_explain")
    page = signed_in(w.observer).get(where, {"class": "shared-write", "environment": "staging"})
    assert reverse("admin:approvals_waiver_change", args=[given]) in page.content.decode()
    assert page.context_data["places"][0].tenant_id == house.tenant, "the choice of the place stays"
    assert signed_in(w.observer).get(where, {"class": "read", "environment": "moon"}).status_code == 400
