"""Running again: a new run that refers to the old one, which stays as it is."""

import re
from io import StringIO
from uuid import UUID, uuid4

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.urls import reverse

from factory.kernel.tenancy import reading
from registry.errors import UnknownWorkflow
from runs.commands import cancel_run
from runs.errors import ModelProfileNotApproved, PreviousRunOpen, PreviousRunUnknown
from runs.models import Run
from runs.rest.submissions import submit
from tests.console.test_pages import signed_in
from tests.support.acts import newer
from tests.support.api import Api
from tests.support.running import House
from tests.support.world import second_world

pytestmark = pytest.mark.slow


def ended(house: House) -> UUID:
    run_id = house.run()
    cancel_run(house.world.requester, run_id=run_id, reason="wrong input")
    return run_id


@pytest.mark.requirement("RUN-32")
def test_only_what_is_over_here_is_run_again_and_the_old_run_stays(house: House) -> None:
    going, old = house.run(), ended(house)
    with pytest.raises(PreviousRunOpen) as refused:
        house.accept(previousRunId=str(going))
    assert [fault.pointer for fault in refused.value.errors] == ["/previousRunId"]
    other = second_world(house.tenant)
    for ctx, previous in ((house.world.requester, uuid4()), (other.requester, old)):
        refusal = PreviousRunUnknown if ctx is house.world.requester else UnknownWorkflow
        with pytest.raises(refusal):
            submit(ctx, payload=house.payload(previousRunId=str(previous)), key=str(uuid4()))
    before = house.row(old)
    fresh = house.accept(previousRunId=str(old))
    assert house.row(fresh).previous_run_id == old
    after = house.row(old)
    assert (before.version, before.state, before.updated_at) == (after.version, after.state, after.updated_at)


def test_a_refused_model_profile_says_who_does_not_name_it_and_which_are_possible(house: House) -> None:
    with pytest.raises(ModelProfileNotApproved) as refused:
        house.accept(modelProfileId="unheard-of")
    assert "this release's manifest does not name it. Both name: code-agent." in refused.value.detail


@pytest.mark.requirement("RUN-32")
def test_the_page_shows_what_is_pinned_and_six_clicks_make_one_run(house: House) -> None:
    old = ended(house)
    release = newer(house)
    client = signed_in(house.world.requester)
    url = reverse("admin:runs_again", args=[old])
    text = client.get(url).content.decode()
    for said in ("sample@1.0.0", "sample@1.1.0", "named by latest", "as before", "code-agent"):
        assert said in text
    with reading(house.system):
        digest = Run.objects.get(pk=old).input_hash
    assert f"…{digest[-8:]}</code>" in text, "as on the page of the run"
    assert "Release of this run" in text
    [key] = re.findall(r'name="key" value="([^"]+)"', text)
    sent = {"key": key, "release_id": str(release)}
    places = {client.post(url, sent).headers["Location"] for _ in range(6)}
    with reading(house.system):
        [fresh] = Run.objects.filter(previous_run_id=old)
    assert places == {reverse("admin:runs_run_change", args=[fresh.id])}
    assert (fresh.release_id, fresh.requested_by) == (release, house.world.requester.actor.subject)
    conflict = client.post(url, {"key": key, "release_id": str(house.release)})
    assert conflict.status_code == 409
    assert client.get(reverse("admin:runs_again", args=[fresh.id])).status_code == 409, "It is not over."
    assert signed_in(house.world.reviewer).get(url).status_code == 403
    for page, kin in ((old, fresh.id), (fresh.id, old)):
        shown = client.get(reverse("admin:runs_run_change", args=[page])).content.decode()
        assert "Runs of the same work" in shown
        assert str(kin) in shown


@pytest.mark.requirement("RUN-32")
def test_the_api_tells_the_whole_family_and_the_command_line_makes_one(house: House) -> None:
    old = ended(house)
    out, options = StringIO(), {
        "tenant": house.tenant, "project": "main", "subject": house.world.requester.actor.subject,
    }  # fmt: skip
    for _ in range(2):
        call_command("submit", previous=old, stdout=out, stderr=StringIO(), **options)
    with reading(house.system):
        [second] = Run.objects.filter(previous_run_id=old)
    cancel_run(house.world.requester, run_id=second.id, reason="again")
    third = house.accept(previousRunId=str(second.id))
    api = Api.as_(house.world.observer)
    for run_id in (old, second.id, third):
        told = api.get(f"/factory/runs/{run_id}").json()["reruns"]
        assert [one["runId"] for one in told] == [str(old), str(second.id), str(third)]
        assert [one["previousRunId"] for one in told] == [None, str(old), str(second.id)]
    assert api.get(f"/factory/runs/{house.run()}").json()["reruns"] == []
    with pytest.raises(CommandError):
        call_command("submit", previous=third, stdout=out, **options)
