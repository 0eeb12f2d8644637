"""The pages of releases and assets: what a release is, what it differs in, and what its end would touch."""

from dataclasses import replace
from html import unescape
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.template.loader import render_to_string
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from approvals.selectors import approval
from factory.console import impact
from factory.console.impact import touched
from factory.kernel.context import Context
from factory.kernel.errors import FieldError
from factory.kernel.tenancy import reading
from registry.admin.actions import alias
from registry.admin.detail import alias_history, comparison, tree
from registry.admin.detail.release import sentence
from registry.admin.detail.tree import drawn, material_of
from registry.commands import deprecate_release, move_alias, record_resolution_failure, submit_release
from registry.errors import AliasInUse
from registry.models import Asset, Release
from registry.selectors import find_release, release, resting_on
from registry.selectors.timeline import timeline_of_release
from runs.admin.actions import impact as touched_runs
from runs.models import Run
from tests.console.test_pages import signed_in
from tests.support.acts import needed, newer, revoke
from tests.support.proposals import ALL_OF_IT, HOSTILE
from tests.support.queries import within_budget
from tests.support.released import newer_manifest
from tests.support.running import House
from tests.support.waivers import template, waiver
from tests.support.world import second_world


@pytest.fixture
def house(tenant_id: str) -> House:
    return House(tenant_id)


def page_of(release_id: UUID) -> str:
    return reverse("admin:registry_release_change", args=[release_id])


def end_of(word: str, release_id: UUID) -> str:
    return reverse(f"admin:registry_{word}", args=[release_id])


def read(by: Context, url: str, status: int = 200, **query: Any) -> str:
    answer = signed_in(by).get(url, query)
    assert answer.status_code == status
    return " ".join(str(answer.content.decode()).split())


def test_says_what_a_release_is_who_let_it_through_and_what_differs_from_the_one_before(house: House) -> None:
    needed(house)
    newest = house.publish(newer_manifest(), commit="b" * 40, a=b"Look closely.\nThen say it.\n")
    client = signed_in(house.world.observer)
    with within_budget("console release page"):
        text = " ".join(client.get(page_of(newest)).content.decode().split())
    for said in (
        "1 agent, 3 skills and 17 workflows; its workflows reach as far as shared-write.",
        "New runs can pin it; latest names it.",
        f"Publication approved by</dt><dd>{house.world.reviewer.actor.subject}",
        "Every threshold of the manifest was reached.",
        ">base@1.0.0</a>",
        "What is different from 1.0.0",
        "7 differences in what the manifest says, 5 of which let more happen; other files: 1 changed.",
        "skill build: how far it reaches",
        "reaches further",
        "Then say it.",
        "the release was published just then",
        "Its review was asked for",
    ):
        assert said in text, said
    assert "Revoke it" not in text
    back = read(house.world.observer, page_of(house.release), against=newest)
    assert "What is different from 1.1.0" in back
    assert "uses more" not in back
    assert "Choose another release to hold it against" in read(house.world.observer, page_of(house.release))
    with reading(house.system):
        other = Release.objects.get(asset__name="base").id
    odd = read(house.world.observer, page_of(newest), against="x")
    assert "“x” is no id of a release to hold this one against." in odd
    assert "What is different from 1.0.0" in odd
    assert "no release of this asset" in read(house.world.observer, page_of(newest), against=other)
    foreign = second_world(house.tenant)
    assert signed_in(foreign.workspace_admin).get(page_of(newest)).status_code == 404


def test_a_reviewer_of_a_publication_finds_the_way_to_what_is_different(house: House) -> None:
    made = house.candidate(newer_manifest(dependencies=[]), commit="b" * 40)
    with reading(house.system):
        asked = release(made).approval_id
    text = read(house.world.reviewer, reverse("admin:approvals_approvalrequest_change", args=[asked]))
    for said in (
        "The release so far: sample@1.1.0",
        f'<a href="{page_of(made)}">See its parts, and what is different</a>',
        "1.0.0, Published",
        "with the verdict pass",
    ):
        assert said in text, said


def test_what_was_not_published_is_read_by_who_decides_and_what_was_taken_back_by_nobody(
    house: House,
) -> None:
    made = house.candidate(newer_manifest(dependencies=[]), commit="b" * 40, a=b"Then say it.\n")
    w = house.world
    for by in (w.reviewer, w.workspace_admin):
        text = read(by, page_of(made))
        assert "Then say it." in text
        assert "without its comments" in text
    text = read(w.observer, page_of(made))
    assert "1.1.0 is not published" in text
    assert "by their hashes" in text
    for hidden in ("Then say it.", "Line by line", "without its comments"):
        assert hidden not in text
    revoke(house, "drain", release_id=made)
    text = read(w.reviewer, page_of(made))
    assert "1.1.0 is Revoked: neither manifests nor contents are shown." in text
    for hidden in ("Then say it.", "Line by line"):
        assert hidden not in text


def test_says_which_part_keeps_a_release_from_being_loaded(house: House) -> None:
    base = needed(house)
    newest = newer(house, dependencies=["base@1.0.0"])
    assert "for new runs, and for those that pinned it" in read(house.world.observer, page_of(newest))
    waiting = house.candidate(newer_manifest("3.0.0", dependencies=["base@1.0.0"]), commit="e" * 40)
    revoke(house, "drain", release_id=base)
    _nobody_can_answer(house, waiting)
    text = read(house.world.observer, page_of(newest))
    assert "<dt>Loads</dt><dd>No<small>It needs base@1.0.0, which is Revoked.</small>" in text
    listed = read(house.world.observer, reverse("admin:registry_release_changelist"))
    assert listed.count("It does not load. It needs base@1.0.0, which is Revoked.") == 2
    assert "taken back: what needs it loads no more" in text
    with reading(house.system):
        row = Release.objects.select_related("asset", "closure").get(pk=newest)
        lost = drawn(replace(material_of(row), kept=frozenset()))
    assert "The content of a.md, e.py, its manifest, s.py is not in the store." in lost.broken
    [agents] = [group for group in lost.groups if group.name == "Agents"]
    assert (agents.is_broken, agents.parts[0].parts[0].state) == (True, "Missing")


def test_a_release_without_workflows_is_not_told_to_reach_anywhere(house: House) -> None:
    with reading(house.system):
        row = Release.objects.select_related("asset", "closure").get(pk=house.release)
        material = material_of(row)
        none = drawn(replace(material, definition={**material.definition, "workflows": []}))
    assert none.reach == ""
    assert sentence(row, none, []).startswith("1 agent and 3 skills. New runs can pin it;")
    made_of = " ".join(render_to_string("registry/parts/tree.html", {"tree": none}).split())
    assert '<span class="fc-soft">each part by its hash</span>' in made_of


def test_a_question_of_a_run_whose_release_was_taken_back_says_that_no_answer_is_taken(house: House) -> None:
    house.run("gated")
    worker = house.hand()
    asked = worker.ask(worker.take(), park=True).approval_id
    where = reverse("admin:approvals_approvalrequest_change", args=[asked])
    assert "Approve exactly this" in read(house.world.reviewer, where)
    revoke(house, "drain", release_id=house.release)
    text = read(house.world.reviewer, where)
    assert "The release was taken back" in text
    assert "Approve exactly this" not in text
    assert "Break the glass…" not in read(house.world.platform_admin, where)
    glass = reverse("admin:approvals_break_glass", args=[asked])
    text = read(house.world.platform_admin, glass)
    assert "No break-glass: no answer would be taken as things stand" in text
    assert "<textarea" not in text
    client = signed_in(house.world.reviewer)
    chosen = {"action": "approve_selected", "_selected_action": [str(asked)], "index": "0"}
    several = client.post(reverse("admin:approvals_approvalrequest_changelist"), chosen, follow=True)
    assert "<strong>Left out.</strong> The release was taken back" in several.content.decode()


def test_what_was_approved_in_advance_for_a_release_says_that_it_was_taken_back(house: House) -> None:
    kind = template(house)
    given = waiver(house, kind)
    pages = {
        reverse("admin:approvals_waiver_change", args=[given]): "it is Revoked now",
        reverse("admin:approvals_waiver_changelist"): "sample@1.0.0, Revoked",
        reverse("admin:runs_runtemplate_change", args=[kind]): "the release is Revoked now",
    }
    for page, said in pages.items():
        assert said not in read(house.world.observer, page)
    revoke(house, "drain", release_id=house.release)
    for page, said in pages.items():
        assert said in read(house.world.observer, page), page


def test_two_releases_that_say_the_same_name_only_what_differs() -> None:
    one, other = Release(semver="1.0.0", commit="a"), Release(semver="1.1.0", commit="a")
    assert comparison.same_but_for(one, other) == "They say and hold the same, but for their version."
    other.commit = "b"
    assert comparison.same_but_for(one, other).endswith("but for their version and commit.")


def test_a_decision_and_what_it_did_have_one_time(house: House) -> None:
    with reading(house.system):
        asked = approval(release(house.release).approval_id)
        story = timeline_of_release(find_release(house.release), asked)
        times = {one.what: one.at for one in story.moments}
    assert times["Approved"] == asked.closed_at
    assert times["Its review was asked for"] < asked.closed_at, "which is not the decision's time"


def _nobody_can_answer(house: House, release_id: UUID) -> None:
    """A publication that would be refused says so where it is decided, in the words of the release's page."""
    with reading(house.system):
        asked = release(release_id).approval_id
    where, mended = (
        reverse("admin:approvals_approvalrequest_change", args=[asked]),
        "what is mended takes another",
    )
    assert mended in read(house.world.observer, page_of(release_id))
    for by in (house.world.reviewer, house.world.observer):
        text = read(by, where)
        assert mended in text, "what to do is said where nothing can be answered"
        assert mended in read(by, f"{where}?part=standing"), "and on pages that are open already"
        assert text.index("<h1>") < text.index("No answer would be taken as things stand"), "the title first"
        assert "It needs base@1.0.0, which is Revoked." in text
        assert "Approve exactly this" not in text
        assert "If you approve" not in text
    assert "No answer to its review would be taken" in read(house.world.observer, page_of(release_id))
    with reading(house.system):
        view = approval(asked)
    for decision in ("approve", "reject", "request_changes"):
        form = {"decision": decision, "version": view.version, "proposal_hash": view.proposal_hash}
        sent = signed_in(house.world.reviewer).post(
            reverse("admin:approvals_decide", args=[asked]), form | {"reason": "because"}
        )
        assert sent.status_code == 410, decision


def test_a_draft_says_what_is_wrong_with_its_commit_and_what_comes_next(house: House) -> None:
    made = UUID(
        submit_release(
            house.world.workspace_admin,
            asset="sample",
            version="2.0.0",
            repository="https://git.example.test/sample.git",
            commit="d" * 40,
        )
    )
    assert "Its commit is being fetched and read." in read(house.world.requester, page_of(made))
    record_resolution_failure(
        house.system,
        release_id=made,
        attempt=0,
        error=HOSTILE[0],
        faults=[FieldError("/agents/0", HOSTILE[2])],
        final=True,
    )
    text = read(house.world.requester, page_of(made))
    assert "is not tried again" in text
    assert "&lt;script&gt;alert(" in text
    assert HOSTILE[0] not in text
    assert HOSTILE[2] not in text


def test_an_alias_is_followed_through_time(house: House) -> None:
    by = house.world.operator
    move_alias(by, asset="sample", alias="stable", release_id=house.release)
    newest = newer(house)
    move_alias(by, asset="sample", alias="stable", release_id=newest, version=1)
    move_alias(by, asset="sample", alias="next", release_id=newest)
    text = read(house.world.observer, page_of(house.release))
    assert text.count(f'then <a href="{page_of(newest)}">1.1.0</a>') == 2
    assert "no alias names it" in text
    with reading(house.system):
        asset = Asset.objects.get(name="sample").id
    client = signed_in(house.world.observer)
    with within_budget("console asset page"):
        whole = " ".join(
            client.get(reverse("admin:registry_asset_change", args=[asset])).content.decode().split()
        )
    assert "2 of 2 releases can be pinned by new runs." in whole
    assert whole.count("somebody moved it by hand") == 3
    assert whole.count("the release was published just then") == 2
    assert whole.index(">1.1.0</a>") < whole.index(">1.0.0</a>")
    operator, where = signed_in(by), reverse("admin:registry_point_alias", args=[house.release])
    page = operator.get(where).content.decode()
    assert "<dt>stable</dt><dd>names 1.1.0 now" in page
    seen = {"alias": "stable", "version-stable": "2"}
    assert signed_in(house.world.requester).post(where, seen).status_code == 403
    assert operator.post(where, seen).status_code == 302
    again = operator.post(where, seen)
    assert (again.status_code, "The alias is at version 3" in again.content.decode()) == (409, True)
    assert operator.post(where, {"alias": "No Slug"}).status_code == 400
    revoke(house, "drain", release_id=newest)
    text = read(house.world.observer, page_of(newest))
    assert "lead nowhere until moved" in text
    assert text.count("Revoked: leads nowhere until moved") == 2
    assert "</span>now</span>" not in text
    listed = read(house.world.observer, reverse("admin:registry_alias_changelist"))
    for said in (">sample stable</a>", ">sample next</a>", f'href="{page_of(newest)}">sample@1.1.0</a>'):
        assert said in listed, said
    assert listed.count("leads nowhere until moved") == 2
    with CaptureQueriesContext(connection) as asked:
        measured = read(house.world.observer, reverse("admin:registry_evaluationrecord_changelist"))
    of_rows = (each["sql"] for each in asked if '"approvals_approvalrequest"' not in each["sql"])
    [releases_read] = [sql for sql in of_rows if 'FROM "registry_release"' in sql]
    assert "DISTINCT ON" in releases_read, "one of each closure"
    assert "registry_closure" not in releases_read
    assert "on sample@1.1.0</a>" in measured
    assert measured.count(">sample@1.1.0</a>") == 1, "an evaluation tells of the release that it is of"
    assert f'href="{page_of(newest)}">sample@1.1.0</a>' in measured


def test_what_is_beyond_the_bounds_of_a_page_is_not_told_to_be_otherwise(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = house.world
    needed(house)
    newest = newer(house, dependencies=["base@1.0.0"])
    move_alias(w.operator, asset="sample", alias="stable", release_id=newest)
    for module, bound in ((alias, 1), (alias_history, 0), (tree, 0)):
        monkeypatch.setattr(module, "MOST_IN_ALL" if module is tree else "MOST", bound)
    text = read(w.observer, page_of(newest))
    assert "latest and stable name it" in text
    assert "not looked at" in text
    assert "Missing" not in text
    operator, where = signed_in(w.operator), reverse("admin:registry_point_alias", args=[newest])
    assert "version-stable" not in operator.get(where).content.decode()
    again = operator.post(where, {"alias": "stable"})
    assert (again.status_code, 'name="version-stable" value="1"' in again.content.decode()) == (409, True)
    assert operator.post(where, {"alias": "stable", "version-stable": "1"}).status_code == 302
    made = house.candidate(newer_manifest("3.0.0", dependencies=[]), commit="e" * 40)
    text = read(w.operator, reverse("admin:registry_point_alias", args=[made]))
    assert "sample@3.0.0 is InReview" in text
    assert 'name="alias"' not in text


def test_more_than_is_counted_hides_neither_held_work_nor_the_readers_own(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = house.world
    runs = [house.run() for _ in range(4)]
    for module in (impact, touched_runs):
        monkeypatch.setattr(module, "MOST", 1)
    assert house.hand("w1", 1).take().run_id in runs
    text = read(w.operator, end_of("revoke", house.release))
    assert "1 of their attempts are in a worker" in text
    house.hand("w2", 1).take()
    assert "At least 2 of their attempts" in read(w.operator, end_of("revoke", house.release))
    mine = replace(w.operator, project_id=w.project)
    for ctx, own in ((mine, 2), (replace(mine, project_id=uuid4()), 0)):
        with reading(house.system):
            here, elsewhere = impact.counted(ctx, Run.objects.filter(pk__in=runs))
        assert (len(here), elsewhere) == (own, 0 if own else 2)
    waiver(house, template(house))
    text = read(w.operator, end_of("deprecate", house.release))
    assert "They end with block and with cancel. With drain they go on." in text


def test_before_an_end_it_says_what_that_would_touch_and_then_does_it(house: House) -> None:
    w, base = house.world, needed(house)
    newest = newer(house, dependencies=["base@1.0.0"])
    waiver(house, template(house), release_id=newest)
    run_id = house.run("gated")
    work = house.hand().take()
    assert work.run_id == run_id
    text = read(w.operator, end_of("revoke", base))
    for said in (
        "drain: they go on with what they have loaded, and get no authorization",
        "Revoke base@1.0.0",
        "sample@1.1.0",
        "it loads no more",
        str(run_id),
        "through another release",
        "1 of their attempts are in a worker",
        "leads nowhere until it is moved",
    ):
        assert said in text, said
    operator = signed_in(w.operator)
    with within_budget("console end of a release"):
        operator.get(end_of("revoke", newest))
    text = read(w.operator, end_of("revoke", newest))
    assert "nightly-gated with sample@1.1.0" in text
    assert "runs can begin with another Published release" in text
    text = read(w.operator, end_of("deprecate", newest))
    assert "drain: they finish" in read(w.operator, end_of("deprecate", house.release))
    assert "latest names it" in text
    older = reverse("admin:registry_point_alias", args=[house.release])
    assert f'<a class="fc-link" href="{older}">Let an alias name sample@1.0.0</a>' in text
    tried = operator.post(end_of("deprecate", newest), {"in_flight": "drain", "reason": "old"})
    assert (tried.status_code, older in tried.content.decode()) == (409, True)
    only = read(w.operator, end_of("deprecate", base))
    assert "no other one of this asset is Published" in only
    assert "let it name another Published one" not in only
    with pytest.raises(AliasInUse, match="no other one of this asset is Published") as refused:
        deprecate_release(w.operator, release_id=base, in_flight="drain", reason="old")
    assert refused.value.detail in unescape(only), "the page and the command say the same"
    with pytest.raises(AliasInUse, match="let it name another Published one first"):
        deprecate_release(w.operator, release_id=newest, in_flight="drain", reason="old")
    assert ">To the releases of base</a>" in only
    assert "<textarea" not in text
    elsewhere = replace(w.operator, project_id=uuid4())
    with reading(elsewhere):
        [runs, kinds] = touched("release", elsewhere, base, resting_on(base))
    assert (runs.total, runs.elsewhere, runs.rows) == (1, 1, [])
    assert (kinds.total, kinds.elsewhere) == (0, 0)

    assert signed_in(w.requester).post(end_of("revoke", newest)).status_code == 403
    assert signed_in(second_world(house.tenant).operator).get(end_of("revoke", newest)).status_code == 404
    form = {"in_flight": "cancel", "reason": ALL_OF_IT[:900]}
    assert operator.post(end_of("revoke", newest), form | {"reason": ""}).status_code == 400
    assert operator.post(end_of("revoke", newest), form).status_code == 302
    text = read(w.operator, page_of(newest))
    assert "Runs that were open were cancelled." in text
    assert HOSTILE[0] not in text
    assert "is Revoked. Only what is Deprecated or InReview or Published" in read(
        w.operator, end_of("revoke", newest)
    )
