"""The search: what people remember of a run, an approval or a release leads there, and nowhere else."""

from uuid import UUID, uuid4

import pytest

import config.urls  # noqa: F401 - it is what registers the pages
from factory.console.searching import SHORTEST_ENDING, sought
from factory.kernel.context import Context
from projects.commands import onboard_project
from runs.rest.submissions import submit
from tests.console.test_pages import signed_in
from tests.support.proposals import said
from tests.support.queries import within_budget
from tests.support.running import House

KEY = "nightly/2026-11-30 #7"


@pytest.fixture(scope="module")
def house() -> House:
    return House(f"t-{uuid4().hex[:16]}")


@pytest.fixture(scope="module")
def run_id(house: House) -> UUID:
    """A run under a key that somebody chose, of a revision, among others."""
    house.run("single")
    given = house.payload("gated", input={"repository": "https://git.example.test/x.git"})
    body, _ = submit(house.world.requester, payload=given, key=KEY)
    return UUID(body["runId"])


def find(member: Context, words: str) -> dict[str, list[str]]:
    """By kind, the titles of what is found; what is opened at once stands under its address."""
    answer = signed_in(member).get("/admin/search/", {"q": words})
    if answer.status_code == 302:
        return {"opened": [answer["Location"]]}
    assert answer.status_code == 200
    return {kind.kind: [hit.title for hit in kind.hits] for kind in answer.context["found"]}


def test_a_run_is_found_by_everything_that_people_remember(house: House, run_id: UUID) -> None:
    reader, ending = house.world.observer, str(run_id)[-8:]
    title = f"gated …{ending}"
    assert find(reader, str(run_id)) == {"opened": [f"/admin/runs/run/{run_id}/change/"]}
    for words in (ending, f"…{ending}", ending[-SHORTEST_ENDING:], KEY, "gated", "GAT", "a" * 40, "aaaaaaa"):
        assert title in find(reader, words)["Runs"], words
    assert title in find(reader, "requester@")["Runs"]
    assert find(reader, "nobody of that name") == {}
    assert find(reader, "%") == find(reader, "") == {}


def test_approvals_are_found_by_their_words_and_releases_by_name_or_commit(house: House) -> None:
    house.run("gated")
    worker = house.hand("finder")
    work = next(each for each in worker.poll() if each.skill_id == "write")
    worker.acquire(work)
    worker.ask(work, said("Send the digest."), summary="Send the October digest to 14 subscribers", park=True)
    assert find(house.world.reviewer, "october DIGEST")["Approvals"] == [
        "Send the October digest to 14 subscribers"
    ]
    for words in ("sample", "sample@1.0", "aaaaaaaa"):
        assert "sample@1.0.0" in find(house.world.reviewer, words)["Releases"], words


def test_only_what_one_may_see_is_found(house: House, run_id: UUID) -> None:
    elsewhere = House(f"{house.tenant}-b")
    for words in (str(run_id), str(run_id)[-8:], KEY):
        assert find(elsewhere.world.platform_admin, words) == {}, words
    # A whole tenant has an inbox of all of its projects, and no list of runs.
    sister = onboard_project(house.world.system(), slug="sister", name="Sister", environments=[], members=[])
    client = signed_in(house.world.tenant_admin)
    for place in ("", sister["projectId"]):
        client.post("/admin/place/", {"place": f"{house.tenant}/{place}"})
        for words in (str(run_id), str(run_id)[-8:], KEY, "requester@"):
            found = {each.kind for each in client.get("/admin/search/", {"q": words}).context["found"]}
            assert found <= (set() if place else {"Approvals"}), (place, words)
    figures = {each.label: each.value for each in client.get("/admin/").context["first"].figures}
    assert figures["Open runs"] == "0"


def test_the_box_is_on_every_page_and_pages_are_found_too(house: House) -> None:
    client = signed_in(house.world.operator)
    assert b'id="fc-find"' in client.get("/admin/runs/run/").content
    with within_budget("console search"):
        page = client.get("/admin/search/", {"q": "Uncertain"})
    assert ("Uncertain attempts", "/admin/runs/step/") in page.context["pages"]
    hostile = client.get("/admin/search/", {"q": "<script>alert(1)</script>\u202e"}).content.decode()
    assert "<script>alert(1)" not in hostile
    assert "⟨U+202E⟩" in hostile


@pytest.mark.parametrize(
    ("typed", "ending", "commit"),
    [("…80b56f", "80b56f", ""), ("80B56F1", "80b56f1", "80b56f1"), ("12345", "", ""), ("x" * 500, "", "")],
)
def test_words_are_taken_for_what_they_could_be(typed: str, ending: str, commit: str) -> None:
    what = sought(typed)
    assert (what.ending, what.commit) == (ending, commit)
    assert len(what.text) <= 200
